// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// exclusives records the exclusive resources of each Peer, its cluster and its regions, so that a change of one Peer
// enqueues only the Peers that it may affect: thousands may change at once.
type exclusives struct {
	mu     sync.Mutex
	byPeer map[string]stake
}

type stake struct {
	cluster types.UID
	regions []region.Key
}

// update records the stake of a Peer and returns the other Peers whose status may depend on the change.
func (s *exclusives) update(name string, source *Source) []string {
	var now stake
	if k, ok := source.index.get(name); ok && k.peer.DeletionTimestamp == nil {
		now = stake{cluster: k.peer.Status.ClusterUID, regions: keysOf(k.peer)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.byPeer[name]
	if before.cluster == now.cluster && slices.Equal(before.regions, now.regions) {
		return nil
	}
	if s.byPeer == nil {
		s.byPeer = map[string]stake{}
	}
	s.byPeer[name] = now
	if now.cluster == "" {
		delete(s.byPeer, name)
	}
	var others []string
	for _, k := range source.index.list() {
		q := k.peer
		if q.Name != name && (lacksExclusive(q) || s.shares(before, q.Name) || s.shares(now, q.Name)) {
			others = append(others, q.Name)
		}
	}
	return others
}

// shares reports whether other shares the cluster or a region with st.
func (s *exclusives) shares(st stake, other string) bool {
	o, ok := s.byPeer[other]
	return ok && (o.cluster == st.cluster && st.cluster != "" ||
		slices.ContainsFunc(o.regions, func(key region.Key) bool { return slices.Contains(st.regions, key) }))
}

// lacksExclusive reports whether p lacks a cluster or region that another Peer has.
func lacksExclusive(p *masterv1alpha1.Peer) bool {
	switch reasonIn(p.Status, masterv1alpha1.PeerConditionRegionsUnique) {
	case masterv1alpha1.PeerReasonRegionServedTwice, masterv1alpha1.PeerReasonSameCluster:
		return true
	default:
		return false
	}
}
