// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package skew_test

import (
	"cmp"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
)

var peerSets = schema.GroupVersionResource{Group: "fanout.atoll.dev", Version: "v1alpha1", Resource: "peersets"}

// state is the state of a name in all members: of a ServiceCluster the owning peer, of an Account
// its role. It is empty if the object does not exist.
type state string

// clusterAt reads a ServiceCluster in all members, which must agree.
func (w *world) clusterAt(name string) state {
	w.t.Helper()
	objects := w.held(ctltest.ServiceClusters, w.acme, name)
	var owner ctltest.Object
	for _, o := range objects {
		if o.Owner() {
			require.Empty(w.t, owner.UID, "two owners: %v", objects)
			owner = o
		}
	}
	if len(objects) == 0 {
		return ""
	}
	require.Len(w.t, objects, len(w.core), "%v", objects)
	require.Equal(w.t, "Configured", owner.Stage, "%v", objects)
	require.Equal(w.t, owner.Target, owner.Plane, "%v", objects)
	for _, o := range objects {
		require.True(w.t, o == owner || o.Role == "Secondary" && of(o) == owner.UID, "%v", objects)
	}
	return state(owner.Plane)
}

// of returns the UID of a guard's primary. With a shared log a claim of the first release names a
// record instead, and the primary is in spec.fanout.bound.
func of(o ctltest.Object) string {
	return cmp.Or(o.Of, o.Field("spec", "fanout", "bound", "uid"))
}

// accountAt reads an Account in all members, which must agree.
func (w *world) accountAt(name string) state {
	w.t.Helper()
	objects := w.held(ctltest.Accounts, "", name)
	if len(objects) == 0 {
		return ""
	}
	require.Len(w.t, objects, len(w.core), "%v", objects)
	homes, roles := map[string]bool{}, map[string]bool{}
	for _, o := range objects {
		require.Equal(w.t, "Active", o.Stage, "%v", objects)
		homes[home(o)] = true
		list, _, err := unstructured.NestedStringSlice(o.Raw.Object, "spec", "roles")
		require.NoError(w.t, err)
		require.Len(w.t, list, 1)
		roles[list[0]] = true
	}
	require.Len(w.t, homes, 1, "%v", homes)
	require.Len(w.t, roles, 1, "%v", objects)
	for role := range roles {
		return state(role)
	}
	return ""
}

// home returns the peer that o names as the home of its Account.
func home(o ctltest.Object) string { return o.Field("spec", "fanout", "home", "peer") }

// held returns the objects of the members under a name.
func (w *world) held(resource schema.GroupVersionResource, namespace, name string) []ctltest.Object {
	w.t.Helper()
	var all []ctltest.Object
	for _, p := range w.core {
		objects, err := w.present.Objects(w.t.Context(), p.Name(), resource, namespace)
		require.NoError(w.t, err)
		if o, ok := objects[name]; ok {
			all = append(all, o)
		}
	}
	return all
}

// rings returns the ring IDs in the members' PeerSets, by plane.
func (w *world) rings() map[string]string {
	w.t.Helper()
	rings := map[string]string{}
	for _, o := range w.held(peerSets, "", "default") {
		rings[o.Plane] = o.Field("spec", "ring")
	}
	require.Len(w.t, rings, len(w.core))
	return rings
}

// ring returns the ring ID, which all members must share.
func (w *world) ring() string {
	w.t.Helper()
	rings := w.rings()
	id := rings[w.core[0].Name()]
	for _, other := range rings {
		require.Equal(w.t, id, other, "%v", rings)
	}
	return id
}

// requireBound requires that each guard of a name is bound to the committed object.
func (w *world) requireBound(name string) {
	w.t.Helper()
	for _, o := range w.held(ctltest.ServiceClusters, w.acme, name) {
		if o.Role == "Secondary" {
			require.Equal(w.t, of(o), o.Field("spec", "fanout", "bound", "uid"), "%v", o)
		}
	}
}
