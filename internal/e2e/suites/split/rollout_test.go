// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		fewest, _ := w.least("web", clusterNames, func() {
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
		fewest, _ := w.least("web", clusterNames, func() {
			w.patch(deployments, "web", `{"spec":{`+image(12)+`}}`)
			w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
		})
		require.GreaterOrEqual(w.t, fewest, 14)
	})
	require.LessOrEqual(w.t, most, 15)
	w.patch(deployments, "web", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2,"maxSurge":2}}}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
}

// most calls do. It returns the highest number of pods of a Deployment in all clusters while do ran,
// without pods that are terminating. It reads each cluster twice and takes the smaller number, so
// that replicas that move between two reads are not counted twice.
func (w *world) most(name string, do func()) (most int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	counted := make(chan int)
	go func() {
		most := 0
		for ctx.Err() == nil {
			if n, err := w.pods(ctx, name); err == nil {
				most = max(most, n)
			}
			time.Sleep(20 * time.Millisecond) // leaves processor time to the clusters
		}
		counted <- most
	}()
	do()
	cancel()
	most = <-counted
	require.Positive(w.t, most, "no sample")
	w.t.Logf("%s: never more than %d pods", name, most)
	return most
}

func (w *world) pods(ctx context.Context, name string) (total int, err error) {
	least := map[string]int{}
	for pass := range 2 {
		for _, c := range clusterNames {
			list, err := w.of(c, pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
			if err != nil {
				return 0, err
			}
			n := 0
			for _, pod := range list.Items {
				if pod.GetDeletionTimestamp() == nil {
					n++
				}
			}
			if pass == 0 {
				least[c] = n
			}
			least[c] = min(least[c], n)
		}
	}
	for _, n := range least {
		total += n
	}
	return total, nil
}
