// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// roster is the membership of the ring in one peer's PeerSet.
type roster struct {
	self   fanoutv1alpha1.PeerState
	listed map[region.PeerName]fanoutv1alpha1.PeerState // other rosters may share it: must not be modified
}

// rosters reads PeerSets. In a ring of a thousand peers each PeerSet lists all peers, and most of
// these lists are equal. So rosters stores a list only if it differs from the list that was read
// last.
type rosters struct {
	mu   sync.Mutex
	last map[region.PeerName]fanoutv1alpha1.PeerState
}

// pack reduces a PeerSet to its identity and its roster. The reduced object must not be encoded or
// copied.
func (r *rosters) pack(set *unstructured.Unstructured) {
	read := &roster{self: selfState(set), listed: map[region.PeerName]fanoutv1alpha1.PeerState{}}
	spec, _ := set.Object["spec"].(map[string]any)
	members, _ := spec["members"].([]any)
	for _, raw := range members {
		m, _ := raw.(map[string]any)
		name, _ := m["peer"].(string)
		state, _ := m["state"].(string)
		read.listed[region.PeerName(name)] = fanoutv1alpha1.PeerState(state)
	}
	r.mu.Lock()
	if maps.Equal(r.last, read.listed) {
		read.listed = r.last
	}
	r.last = read.listed
	r.mu.Unlock()
	set.Object = map[string]any{"metadata": identity(set), "roster": read}
}

// keepSelf reduces a PeerSet to its identity and the state of its own peer.
func keepSelf(set *unstructured.Unstructured) {
	spec, _ := set.Object["spec"].(map[string]any)
	set.Object = map[string]any{"metadata": identity(set), "spec": map[string]any{"self": spec["self"]}}
}

// selfState returns the state of the PeerSet's own peer.
func selfState(set *unstructured.Unstructured) fanoutv1alpha1.PeerState {
	state, _, _ := unstructured.NestedString(set.Object, "spec", "self", "state")
	return fanoutv1alpha1.PeerState(state)
}

// roster returns the peer's roster, nil if its cache has none.
func (m *member) roster() *roster {
	set, ok := m.sets.Get(types.NamespacedName{Name: fanoutv1alpha1.PeerSetName})
	if !ok {
		return nil
	}
	read, _ := set.Object["roster"].(*roster)
	return read
}

// rosterOf returns the roster of the first Active member by name, nil if the caches have none.
func rosterOf(members map[region.PeerName]*member) *roster {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if r := members[name].roster(); r != nil && r.self == fanoutv1alpha1.PeerActive {
			return r
		}
	}
	return nil
}

// stateIn returns a peer's state in the ring. This is the state in the peer's own PeerSet; empty if
// the peer has no PeerSet. If the peer's PeerSet is not known, it is the state that the roster of
// others lists for the peer; empty if that roster does not list the peer.
func stateIn(name region.PeerName, m *member, others func() *roster) fanoutv1alpha1.PeerState {
	if m != nil {
		if own := m.roster(); own != nil {
			return own.self
		}
		if m.sets.Err() == nil {
			return ""
		}
	}
	if r := others(); r != nil {
		return r.listed[name]
	}
	return ""
}
