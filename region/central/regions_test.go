// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// A region that is Bound in several peers stays with the Peer that serves it. When that Peer loses the region, exactly
// one of the others serves it.
func TestRegionServedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us", "ap")
		w.register("ap", "eu", "us")
		p := w.start(PeersOptions{})
		w.claim(w.servers["us"], "loodse", "one", "Bound")
		w.claim(w.servers["us"], "loodse", "two", "Bound")
		pass(2 * time.Second)
		w.claim(w.servers["eu"], "loodse", "one", "Bound")
		w.claim(w.servers["eu"], "other", "one", "Bound")
		w.claim(w.servers["ap"], "loodse", "one", "Bound")
		pass(2 * time.Second)
		require.Equal(t, []string{"one.loodse", "two.loodse"}, p.served("us"))
		require.Equal(t, []string{"one.other"}, p.served("eu"))
		require.Equal(t, []string{"one.other"}, w.regions("eu"))
		require.Equal(t, "False RegionServedTwice", w.ready("eu"))
		require.Equal(t, "region one.loodse is served by Peer us", w.message("eu", masterv1alpha1.PeerConditionRegionsUnique))
		require.Equal(t, "True Unique", w.conditionOf("us", masterv1alpha1.PeerConditionRegionsUnique))

		// The region stays with the same Peer after a restart of the program, and during an outage of the peer that
		// serves it.
		p.stop()
		w.servers["us"].Partition(true)
		p = w.start(PeersOptions{})
		pass(10 * time.Minute)
		require.Equal(t, []string{"one.loodse", "two.loodse"}, p.served("us"))
		require.Equal(t, "False RegionServedTwice", w.ready("eu"))
		w.servers["us"].Partition(false)
		pass(10 * time.Minute)
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))

		w.claim(w.servers["us"], "loodse", "one", "Conflict")
		pass(2 * time.Second)
		require.Equal(t, []string{"two.loodse"}, p.served("us"))
		holders := 0
		for _, name := range []string{"ap", "eu"} {
			for _, r := range w.regions(name) {
				if r == "one.loodse" {
					holders++
				}
			}
		}
		require.Equal(t, 1, holders)

		// A Peer that is being deleted loses its regions, even while its finalizers keep the object.
		obj, err := w.client(w.plane, peerResource, "").Get(t.Context(), "us", metav1.GetOptions{})
		require.NoError(t, err)
		obj.SetFinalizers([]string{"example.com/wait"})
		_, err = w.client(w.plane, peerResource, "").Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		w.deletePeer("us")
		w.claim(w.servers["eu"], "loodse", "two", "Bound")
		pass(2 * time.Second)
		_, present := p.ring.Snapshot().Peer("us")
		require.False(t, present)
		require.Equal(t, masterv1alpha1.PeerTerminating, w.get("us").Status.Phase)
		require.Contains(t, p.served("eu"), "two.loodse")
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
	})
}

// While the plane is unreachable nothing is published, and published peers stay; later the missed changes follow.
func TestPlaneAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.register("eu", "us")
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		before := p.ring.Snapshot()
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)
		w.plane.Partition(true)
		w.claim(w.servers["eu"], "loodse", "eu-west-2", "Bound")
		w.servers["us"].Partition(true)
		pass(time.Hour)
		require.Same(t, before, p.ring.Snapshot())
		_, err = conn.Dynamic().Resource(namespaceResource).Get(t.Context(), "default", metav1.GetOptions{})
		require.NoError(t, err)
		w.plane.Partition(false)
		pass(2 * time.Minute)
		require.Equal(t, []string{"eu-west-1.loodse", "eu-west-2.loodse"}, p.served("eu"))
		require.Equal(t, "False Unreachable", w.ready("us"))

		// A program that starts while the plane is unreachable publishes the peers once the plane is reachable.
		p.stop()
		w.plane.Partition(true)
		p = w.start(PeersOptions{})
		pass(time.Hour)
		require.Zero(t, p.ring.Snapshot().Len())
		w.plane.Partition(false)
		pass(time.Minute)
		require.Equal(t, 2, p.ring.Snapshot().Len())
	})
}

func peerOf(name string, age int, cluster types.UID, regions ...string) *masterv1alpha1.Peer {
	p := &masterv1alpha1.Peer{}
	p.Name, p.Status.ClusterUID = name, cluster
	p.CreationTimestamp = metav1.Unix(int64(1_000_000-age), 0)
	for _, r := range regions {
		p.Status.Regions = append(p.Status.Regions, masterv1alpha1.RegionReference{Name: r, Provider: "loodse"})
	}
	return p
}

// A region is served where its claim is Bound, unless the claim is a guard.
func TestBound(t *testing.T) {
	t.Parallel()
	claim := func(name, phase, stage, role string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
		obj.SetNamespace("loodse")
		obj.SetName(name)
		written(obj, regionv1alpha1.RegionClaimManager)
		if stage != "" {
			obj.Object["spec"] = map[string]any{"fanout": map[string]any{"stage": stage, "claim": map[string]any{"role": role}}}
		}
		stripClaim(obj, nil, true)
		return obj
	}
	require.Equal(t, []region.Key{
		{Provider: "loodse", Name: "applied"}, {Provider: "loodse", Name: "committed"}, {Provider: "loodse", Name: "moved-here"},
	}, bound([]*unstructured.Unstructured{
		claim("moved-here", "Bound", "Configured", "Secondary"),
		claim("committed", "Bound", "Configured", "Primary"),
		claim("applied", "Bound", "", ""),
		claim("lost", "Conflict", "", ""),
		claim("guard", "Conflict", "Reserved", "Secondary"),
		claim("guard-of-what-was-bound", "Bound", "Reserved", "Secondary"),
		claim("not.a_region", "Bound", "", ""),
	}))
}

// written sets managedFields so that manager owns the phase of a RegionClaim.
func written(claim *unstructured.Unstructured, manager string) {
	claim.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "kubecarrier.io/v1alpha1", Subresource: "status",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:phase":{}}}`),
	}})
}

// Another client that writes statuses neither moves a region to a peer nor away from it.
func TestAPhaseThatIsNoArbitersCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		p := w.start(PeersOptions{})
		eu := w.servers["eu"]
		w.claimBy("stray", eu, "loodse", "one", "Bound")
		w.claim(eu, "loodse", "two", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"two.loodse"}, p.served("eu"))
		w.claimBy("stray", eu, "loodse", "two", "Conflict")
		pass(time.Minute)
		require.Equal(t, []string{"two.loodse"}, p.served("eu"), "as an arbiter wrote last")
		require.Equal(t, []string{"two.loodse"}, w.regions("eu"))
		eu.Partition(true)
		eu.Compact()
		eu.Partition(false)
		pass(10 * time.Minute)
		require.Equal(t, []string{"two.loodse"}, p.served("eu"), "the claims are listed again")
		w.claim(eu, "loodse", "two", "Conflict")
		w.claim(eu, "loodse", "one", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"one.loodse"}, p.served("eu"))
		w.claimBy("stray", eu, "loodse", "two", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"one.loodse"}, p.served("eu"))

		// A new claim of the same name has no earlier phase.
		require.NoError(t, w.client(eu, claimResource, "loodse").Delete(t.Context(), "one", metav1.DeleteOptions{}))
		w.claimBy("stray", eu, "loodse", "one", "Bound")
		pass(time.Minute)
		require.Empty(t, p.served("eu"))
	})
}

// If a status was overwritten while no program ran, the Peer's regions stay until an arbiter writes the status.
func TestAPhaseThatWasOverwrittenBeforeTheStartChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		p := w.start(PeersOptions{})
		eu := w.servers["eu"]
		w.claim(eu, "loodse", "one", "Conflict")
		w.claim(eu, "loodse", "two", "Bound")
		w.claim(eu, "loodse", "three", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"three.loodse", "two.loodse"}, p.served("eu"))
		p.stop()
		w.claimBy("stray", eu, "loodse", "one", "Bound")
		w.claimBy("stray", eu, "loodse", "two", "Conflict")
		w.claimBy("stray", eu, "loodse", "three", "Bound")
		p = w.start(PeersOptions{})
		pass(time.Minute)
		require.Equal(t, []string{"three.loodse", "two.loodse"}, p.served("eu"))
		require.Equal(t, []string{"three.loodse", "two.loodse"}, w.regions("eu"))
		w.claimBy("stray", eu, "loodse", "two", "Pending")
		pass(time.Minute)
		require.Equal(t, []string{"three.loodse", "two.loodse"}, p.served("eu"))

		w.claim(eu, "loodse", "two", "Conflict")
		require.NoError(t, w.client(eu, claimResource, "loodse").Delete(t.Context(), "three", metav1.DeleteOptions{}))
		pass(time.Minute)
		require.Empty(t, p.served("eu"), "an arbiter wrote one, and the other is deleted")
		w.claim(eu, "loodse", "one", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"one.loodse"}, p.served("eu"))
	})
}
