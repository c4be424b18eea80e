// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// rollout changes the template, the replicas and the clusters of a Deployment at the same time, and
// then rolls it out with a maxUnavailable of one and no maxSurge. All clusters share this budget.
func (w *world) rollout() {
	image := func(version int) string {
		return fmt.Sprintf(`"template":{"spec":{"containers":[{"name":"c","image":"registry.example.com/app:%d","resources":{"requests":{"cpu":"10m"}}}]}}`, version)
	}
	most := w.most("web", func() {
		fewest := w.least("web", clusterNames, func() {
			w.patchTarget("cluster-1", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`)
			w.patch(deployments, "web", `{"spec":{"replicas":18,`+image(11)+`}}`)
			w.divided(deployments, "web", map[string]int{"cluster-2": 8, "cluster-3": 10})
		})
		require.GreaterOrEqual(w.t, fewest, budget)
	})
	require.LessOrEqual(w.t, most, 18+2)

	w.patchTarget("cluster-1", `{"spec":{"evictAfter":null}}`)
	w.patch(deployments, "web", `{"spec":{"replicas":15}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	w.patch(deployments, "web", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	most = w.most("web", func() {
		fewest := w.least("web", clusterNames, func() {
			w.patch(deployments, "web", `{"spec":{`+image(12)+`}}`)
			w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
		})
		require.GreaterOrEqual(w.t, fewest, 14)
	})
	require.LessOrEqual(w.t, most, 15)
	w.patch(deployments, "web", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2,"maxSurge":2}}}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
}
