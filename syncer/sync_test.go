// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
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
		require.Equal(t, []string{"patch deployments/status web"}, p.down.writes(), "only the controller's write")

		p.reset()
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 3, field(p.down.get(deployments, "web"), "spec", "replicas"))
		require.Equal(t, []string{"patch deployments web"}, p.down.writes())
		require.Equal(t, []string{"patch deployments web"}, p.up.writes(), "only the user's write")
		require.EqualValues(t, 1, field(p.up.get(deployments, "web"), "status", "observedGeneration"), "the downstream has not observed the change yet")

		p.up.delete(deployments, "web")
		p.rest()
		require.Nil(t, p.down.get(deployments, "web"))
		require.Nil(t, p.up.get(deployments, "web"))
		require.Empty(t, p.problems())
	})
}

// The syncer computes the desired object of a new object once. Events of our own writes, and new lists of the same
// objects, do not make it compute the desired object again.
func TestEachChangeIsWorkedOutOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var worked atomic.Int32
		p := newPair(t, syncer.Options{Transform: []syncer.Transformer{func(*unstructured.Unstructured) error {
			worked.Add(1)
			return nil
		}}})
		p.up.numbered(20)
		p.rest()
		require.Equal(t, 20, p.down.count())
		require.EqualValues(t, 20, worked.Swap(0))
		p.up.Partition(true)
		time.Sleep(time.Minute)
		p.up.Partition(false)
		time.Sleep(time.Minute)
		require.Zero(t, worked.Load(), "the new lists have the same objects")

		// Another client changes the object while our finalizer is being added: neither change is lost.
		p.up.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Name: "a", Do: regiontest.Delay(5 * time.Second)}) // longer than settle
		p.up.create(configMaps, a)
		p.settle()
		got := p.up.get(configMaps, "a")
		require.NoError(t, unstructured.SetNestedField(got.Object, "w", "data", "k"))
		_, err := p.up.of(configMaps).Update(t.Context(), got, metav1.UpdateOptions{FieldManager: "somebody"})
		require.NoError(t, err)
		p.rest()
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))
		require.NotEmpty(t, p.up.get(configMaps, "a").GetFinalizers())
	})
}

// If a client creates an object with our finalizer, the syncer does not have to write the finalizer.
func TestFinalizerThatIsThere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.reset()
		p.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: ["+v1alpha1.FinalizerPrefix+target+"]}}")
		p.rest()
		require.NotNil(t, p.down.get(configMaps, "a"))
		require.Equal(t, []string{"create configmaps "}, p.up.writes(), "only the user's write")
		require.Equal(t, []string{"patch configmaps a"}, p.down.writes())
		p.up.delete(configMaps, "a")
		p.rest()
		require.Nil(t, p.up.get(configMaps, "a"))
	})
}
