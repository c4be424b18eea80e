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

// roster is what one peer's PeerSet says of who belongs to the ring.
type roster struct {
	self   fanoutv1alpha1.PeerState
	listed map[region.PeerName]fanoutv1alpha1.PeerState // shared; not to be modified
}

// rosters reads PeerSets. Each peer of a thousand lists all thousand, mostly alike: that
// list is kept once.
type rosters struct {
	mu   sync.Mutex
	last map[region.PeerName]fanoutv1alpha1.PeerState
}

// pack leaves of a PeerSet its identity and its roster. The result is not to be encoded
// or copied.
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

// keepSelf leaves of a PeerSet its identity and what it says of its own peer.
func keepSelf(set *unstructured.Unstructured) {
	spec, _ := set.Object["spec"].(map[string]any)
	set.Object = map[string]any{"metadata": identity(set), "spec": map[string]any{"self": spec["self"]}}
}

// selfState is what a PeerSet says of the peer in which it stands.
func selfState(set *unstructured.Unstructured) fanoutv1alpha1.PeerState {
	state, _, _ := unstructured.NestedString(set.Object, "spec", "self", "state")
	return fanoutv1alpha1.PeerState(state)
}

// roster is nil if the peer has shown none.
func (m *member) roster() *roster {
	set, ok := m.sets.Get(types.NamespacedName{Name: fanoutv1alpha1.PeerSetName})
	if !ok {
		return nil
	}
	read, _ := set.Object["roster"].(*roster)
	return read
}

// rosterOf is that of the first full member by name, nil if none has shown one.
func rosterOf(members map[region.PeerName]*member) *roster {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if r := members[name].roster(); r != nil && r.self == fanoutv1alpha1.PeerActive {
			return r
		}
	}
	return nil
}

// stateIn is how far a peer belongs to the ring: by its own PeerSet, or by others' if it
// has not shown one. Empty if it does not.
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
