// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region"
)

// fanoutOf returns spec.fanout of an object in p whose target is us.
func fanoutOf(p region.PeerName, role, stage string) map[string]any {
	claim := map[string]any{
		"operation": "op-1", "digest": "d", "start": "2026-03-01T12:00:00.000000Z", "role": role, "peer": string(p), "target": "us",
	}
	if role == "Secondary" {
		claim["primary"] = map[string]any{"peer": "us", "uid": "u-1"}
	}
	return map[string]any{"claim": claim, "stage": stage}
}

// commit makes the applied ServiceCluster in us Configured.
func (w *world) commit() {
	w.t.Helper()
	obj := w.stored("us", clusters)
	require.NoError(w.t, unstructured.SetNestedField(obj.Object, "kubeconfig", "spec", "kubeconfigSecret", "name"))
	require.NoError(w.t, unstructured.SetNestedMap(obj.Object, fanoutOf("us", "Primary", "Configured"), "spec", "fanout"))
	_, err := w.conn("us").Dynamic().Resource(clusters).Namespace(provider).Update(w.t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func (w *world) guard(p region.PeerName) {
	w.t.Helper()
	obj := w.object("ServiceCluster", name)
	require.NoError(w.t, unstructured.SetNestedMap(obj.Object, fanoutOf(p, "Secondary", "Reserved"), "spec", "fanout"))
	_, err := w.conn(p).Dynamic().Resource(clusters).Namespace(provider).Create(w.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func TestAServiceClusterIsPendingUntilItsClaimIsBound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.plane.Partition(true)
		w.start(w.api, Options{})
		w.guard("eu")
		w.cluster("us")
		passes(3 * time.Second)
		w.commit()
		passes(30 * time.Second)
		require.Equal(t, "Pending", w.statusOf("us"), "its claim was created")
		require.Equal(t, "Pending RegionUnbound", w.gated("us"))
		require.Equal(t, "none", w.statusOf("eu"), "a guard has none")
		w.plane.Partition(false)
		passes(2 * time.Minute)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Ready Bound", w.gated("us"))
		require.Equal(t, "silence", w.gated("eu"))
		require.Equal(t, w.stored("us", clusters).GetUID(), w.stored("us", claims).GetOwnerReferences()[0].UID)
	})
}

func TestAServiceClusterWhoseClaimIsLostIsPendingAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.bindTo("us", "eu")
		w.cluster("us")
		passes(3 * time.Second)
		w.commit()
		passes(3 * time.Second)
		require.Equal(t, "Ready Bound", w.gated("us"))

		w.unclaim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		require.Equal(t, "Conflict eu", w.statusOf("us"), "the ServiceCluster has a new claim")
		require.Equal(t, "Pending RegionUnbound", w.gated("us"))
		message := meta.FindStatusCondition(conditionsOf(w.stored("us", clusters)), regionBound).Message
		require.NotContains(t, message, "eu", "tenants do not see peers")

		w.unclaim("eu")
		passes(3 * time.Second)
		require.Equal(t, "Ready Bound", w.gated("us"))
	})
}

// TestTheGateIsClosedBeforeTheRegionIsHandedOver checks that the gate of the ServiceCluster in the old
// holder's peer (see the package documentation) is closed before the Observer reports the new decision.
func TestTheGateIsClosedBeforeTheRegionIsHandedOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		opts := Options{Observer: &Observer{Decided: func(_ context.Context, e DecideEvent) {
			if e.Before == "us" {
				require.Equal(t, "Pending NoRegionClaim", w.gated("us"))
			}
		}}}
		w.start(w.api, opts)
		w.bindTo("us", "eu")
		w.cluster("us")
		passes(3 * time.Second)
		w.commit()
		passes(3 * time.Second)
		w.unclaim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

func TestTheClaimOfAServiceClusterGoesWithIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.cluster("us")
		passes(3 * time.Second)
		w.claim("eu")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		w.cluster("eu") // the user's claim is not deleted
		passes(3 * time.Second)
		for _, p := range []region.PeerName{"eu", "us"} {
			require.NoError(t, w.conn(p).Dynamic().Resource(clusters).Namespace(provider).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		passes(3 * time.Second)
		require.Equal(t, "none", w.statusOf("us"))
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

func TestAnAppliedServiceClusterIsPendingUntilItIsAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.cluster("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Pending Bound", w.gated("us"))
		w.commit()
		passes(3 * time.Second)
		require.Equal(t, "Ready Bound", w.gated("us"))
	})
}

// TestTheStatusOfOthersIsLeftAlone checks that arbiters keep the conditions that another client
// writes after a probe of the cluster, and, while the gate is open, the phase that this client
// writes.
func TestTheStatusOfOthersIsLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(w.api, Options{})
		w.cluster("us")
		passes(3 * time.Second)
		w.commit()
		passes(3 * time.Second)
		probe := func(phase string) {
			obj := w.stored("us", clusters)
			apply := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
				"phase": phase, "kubernetesVersion": map[string]any{"gitVersion": "v1.36.0"},
				"conditions": []any{map[string]any{
					"type": "Reachable", "status": "False", "reason": "Unreachable", "message": "it does not answer",
					"lastTransitionTime": "2026-03-01T12:00:00Z",
				}},
			}}}
			apply.SetGroupVersionKind(obj.GroupVersionKind())
			_, err := w.conn("us").Dynamic().Resource(clusters).Namespace(provider).ApplyStatus(t.Context(), name, apply,
				metav1.ApplyOptions{FieldManager: "prober", Force: true})
			require.NoError(t, err)
		}
		probe("NotReady")
		passes(time.Minute)
		require.Equal(t, "NotReady Bound", w.gated("us"))
		status := w.stored("us", clusters).Object["status"].(map[string]any)
		require.Len(t, status["conditions"], 2)
		require.NotEmpty(t, status["kubernetesVersion"])

		w.claim("eu")
		passes(time.Second)
		w.unclaim("us")
		passes(3 * time.Second)
		require.Equal(t, "Pending RegionUnbound", w.gated("us"), "the gate is above all")
		before := writes(w.ring.Server("us"))
		w.unclaim("eu")
		passes(3 * time.Second)
		require.Equal(t, "NotReady Bound", w.gated("us"), "from what the prober found")
		probe("NotReady")
		passes(time.Hour)
		require.Equal(t, "NotReady Bound", w.gated("us"))
		require.Less(t, writes(w.ring.Server("us"))-before, 8, "the writers do not alternate")
	})
}

func TestOnlyTheRegionsOfThisReplica(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		shard := &toggled{changed: make(chan struct{})}
		w.start(w.api, Options{Shard: shard})
		w.cluster("us")
		w.claim("eu")
		passes(time.Minute)
		require.Equal(t, "none", w.statusOf("us"))
		require.Equal(t, "silence", w.statusOf("eu"))
		shard.own()
		passes(10 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		require.Equal(t, "Conflict eu", w.statusOf("us"))
	})
}
