// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/syncer"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "web:1"}]}
`

func TestDeploymentGoesDownAndItsStatusUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.rest()
		d := p.down.get(deployments, "web")
		require.EqualValues(t, 2, field(d, "spec", "replicas"))
		require.Empty(t, d.GetFinalizers())
		require.NotContains(t, d.GetLabels(), "workloads.kcp.io/cluster")
		require.Equal(t, []string{"syncer.atoll.dev/my-cluster"}, p.up.get(deployments, "web").GetFinalizers())

		p.reset()
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2,"readyReplicas":1}}`, "status")
		p.rest()
		require.JSONEq(t, `{"observedGeneration":1,"replicas":2,"readyReplicas":1}`, asJSON(t, field(p.up.get(deployments, "web"), "status")))
		require.Equal(t, []string{"patch deployments/status web"}, p.up.writes())
		require.Equal(t, []string{"patch deployments/status web"}, p.down.writes(), "the controller's")

		p.reset()
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 3, field(p.down.get(deployments, "web"), "spec", "replicas"))
		require.Equal(t, []string{"patch deployments web"}, p.down.writes())
		require.Equal(t, []string{"patch deployments web"}, p.up.writes(), "the user's")
		require.EqualValues(t, 1, field(p.up.get(deployments, "web"), "status", "observedGeneration"), "the cluster has not looked yet")

		p.up.delete(deployments, "web")
		p.rest()
		require.Nil(t, p.down.get(deployments, "web"))
		require.Nil(t, p.up.get(deployments, "web"))
		require.Empty(t, p.problems())
	})
}
