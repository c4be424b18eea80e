// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

var peerSets = schema.GroupVersionResource{Group: "fanout.atoll.dev", Version: "v1alpha1", Resource: "peersets"}

// requireMembers requires that the PeerSet of each member lists exactly these members, all Active,
// and that no change is in progress.
func (r *ring) requireMembers(members []*plane.Plane) {
	r.t.Helper()
	var want []string
	for _, p := range members {
		want = append(want, p.Name())
	}
	slices.Sort(want)
	for _, p := range members {
		objects, err := r.Objects(r.t.Context(), p.Name(), peerSets, "")
		require.NoError(r.t, err)
		set, ok := objects["default"]
		require.True(r.t, ok, "%s has no PeerSet", p.Name())
		list, _, err := unstructured.NestedSlice(set.Raw.Object, "spec", "members")
		require.NoError(r.t, err)
		var got []string
		for _, m := range list {
			member, ok := m.(map[string]any)
			require.True(r.t, ok)
			require.Equal(r.t, "Active", member["state"], "%v in the PeerSet of %s", member["peer"], p.Name())
			got = append(got, member["peer"].(string))
		}
		slices.Sort(got)
		require.Equal(r.t, want, got, "the PeerSet of %s", p.Name())
		change, _, err := unstructured.NestedMap(set.Raw.Object, "spec", "change")
		require.NoError(r.t, err)
		require.Empty(r.t, change, "the PeerSet of %s", p.Name())
	}
}

// requireNothing requires that the guest, which has left, holds no object of the protocol, except
// guards of committed ServiceClusters. before holds the names of the ServiceClusters that were
// acknowledged before the guest began to leave.
//
// An add that still has the guest configured reserves its ServiceCluster there before it reads the
// members:
//
//   - If the add read the members from before the change, and made its reservation after the guest
//     was emptied, the add is committed. Its guard stays in the guest and has no effect.
//   - Otherwise the add is refused and deletes its reservation. If the process of the add was killed,
//     the next recovery with the guest configured deletes the reservation. The guest may apply a
//     request of a killed process after that recovery; the entry stays in the log, and a later
//     recovery deletes the reservation.
func (r *ring) requireNothing(before map[string]bool) {
	r.t.Helper()
	accounts, err := r.Objects(r.t.Context(), r.guest.Name(), ctltest.Accounts, "")
	require.NoError(r.t, err)
	for _, o := range accounts {
		require.Empty(r.t, o.Operation, "%s has left and holds %s", r.guest.Name(), o)
	}
	r.left += len(r.leftInGuest(before))
	for deadline := time.Now().Add(time.Minute); ; {
		r.adders.recover(r.Planes)
		left := r.leftInGuest(before)
		if len(left) == 0 {
			return
		}
		require.True(r.t, time.Now().Before(deadline), "%s has left and holds %v", r.guest.Name(), left)
	}
}

// leftInGuest returns the reservations in the guest without a committed ServiceCluster. It fails
// the test if the guest holds anything else.
func (r *ring) leftInGuest(before map[string]bool) []ctltest.Object {
	r.t.Helper()
	var left []ctltest.Object
	clusters, err := r.Objects(r.t.Context(), r.guest.Name(), ctltest.ServiceClusters, r.acme)
	require.NoError(r.t, err)
	for _, o := range clusters {
		require.Equal(r.t, "Secondary Reserved", o.Role+" "+o.Stage, "%s has left and holds %s", r.guest.Name(), o)
		require.False(r.t, before[o.Name], "%s was there before %s left, which holds %s", o.Name, r.guest.Name(), o)
		objects, err := r.Objects(r.t.Context(), o.Target, ctltest.ServiceClusters, r.acme)
		require.NoError(r.t, err)
		if primary := objects[o.Name]; !primary.Owner() || primary.UID != o.Of {
			left = append(left, o)
		}
	}
	return left
}
