// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"slices"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
)

var peerSets = schema.GroupVersionResource{Group: "fanout.atoll.dev", Version: "v1alpha1", Resource: "peersets"}

// requireMembers reads the PeerSet of each member: it lists all of them, Active,
// and no change is under way.
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

// requireNothing says that the guest holds nothing of the protocol's.
func (r *ring) requireNothing(resource string) {
	r.t.Helper()
	gvr, namespace := ctltest.ServiceClusters, r.acme
	if resource == "accounts" {
		gvr, namespace = ctltest.Accounts, ""
	}
	objects, err := r.Objects(r.t.Context(), r.guest.Name(), gvr, namespace)
	require.NoError(r.t, err)
	for _, o := range objects {
		require.Empty(r.t, o.Operation, "%s has left and holds %s", r.guest.Name(), o)
	}
}
