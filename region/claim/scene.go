// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// regionState is the cached state of one region.
type regionState struct {
	key      region.Key
	places   []peerState // by peer
	decision decision
	contacts map[region.PeerName]contact // of the ring
	again    time.Duration               // when to reconcile again without an event; zero: never
}

// peerState is one peer with a RegionClaim or a ServiceCluster of the name.
type peerState struct {
	peer    *peer
	contact contact
	claim   *unstructured.Unstructured // nil: none
	cluster *unstructured.Unstructured // nil: none, or a guard
}

// later requests a reconcile after d.
func (s *regionState) later(d time.Duration) { s.again = loop.Sooner(s.again, d) }

// observe collects the cached state of a region. The state is nil if the Directory is not known
// yet; false means that the decisions are not known yet.
func (a *Arbiter) observe(k region.Key, now time.Time) (*regionState, bool) {
	s := &regionState{key: k, contacts: map[region.PeerName]contact{}}
	a.mu.Lock()
	ring := a.ring
	a.mu.Unlock()
	if ring == nil {
		return nil, false
	}
	key := types.NamespacedName{Namespace: k.Provider, Name: k.Name}
	peers := map[region.PeerName]*peer{}
	for _, p := range a.engaged() {
		since, ok := ring[p.name]
		if !ok {
			continue
		}
		peers[p.name] = p
		at := peerState{peer: p, contact: a.contactOf(p, since, now, s)}
		s.contacts[p.name] = at.contact
		at.claim, _ = p.claims.Get(key)
		if cluster, ok := p.clusters.Get(key); ok && inEffect(cluster) {
			at.cluster = cluster
		}
		if at.claim != nil || at.cluster != nil {
			s.places = append(s.places, at)
		}
	}
	slices.SortFunc(s.places, func(x, y peerState) int { return cmp.Compare(x.peer.name, y.peer.name) })
	for name, since := range ring {
		if peers[name] == nil {
			s.contacts[name] = a.contactOf(nil, since, now, s)
		}
	}
	if a.decisions == nil {
		return s, true
	}
	select {
	case <-a.decisions.Synced():
	default:
		return s, false
	}
	lease, ok := a.decisions.Get(types.NamespacedName{Namespace: a.opts.Namespace, Name: leaseName(k)})
	if !ok {
		return s, true
	}
	// A Lease that cannot be decoded is reported when the round reads it.
	s.decision, _ = decisionIn(lease, k)
	return s, true
}

// contactOf returns the contact of a peer that joined the ring at the time since. p is nil while the
// peer is not engaged.
func (a *Arbiter) contactOf(p *peer, since, now time.Time, s *regionState) contact {
	switch left := a.opts.Patience - now.Sub(since); {
	case p != nil && p.fresh():
		return fresh
	case p != nil && (p.answered.Load() || p.conn.Health().State == region.Unhealthy), left <= 0:
		return silent
	default:
		s.later(left)
		return awaited
	}
}

// view returns the state s as the input of decide. It also records since when the holder's peer is missing from the
// Directory, and since when the claims of a region without a holder compete.
func (a *Arbiter) view(s *regionState, now time.Time) view {
	v := view{decision: s.decision}
	for _, at := range s.places {
		if at.claim == nil || !inEffect(at.claim) {
			continue
		}
		c := candidate{
			peer: at.peer.name, contact: at.contact, uid: at.claim.GetUID(),
			created: at.claim.GetCreationTimestamp().UTC(), leaving: leaving(at.claim), bound: boundSince(at.claim, at.peer.name),
		}
		if uid := at.peer.uid.Load(); uid != nil {
			c.cluster = *uid
		}
		v.candidates = append(v.candidates, c)
	}
	for _, c := range s.contacts {
		v.awaiting = v.awaiting || c == awaited
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if d := v.decision; !d.none() {
		var there bool
		if v.holder, there = s.contacts[d.peer]; !there {
			v.left = true
			v.departed = elapsed(a.missing, d.peer, now, a.opts.Departure, s)
		}
	}
	v.settled = true
	if _, contested := v.choose(); contested && decide(v).act != keep {
		v.settled = elapsed(a.claimed, s.key, now, a.opts.Settle, s)
	} else {
		delete(a.claimed, s.key)
	}
	return v
}

// elapsed reports whether d has passed since the time that began holds for the key. For a key
// without a time, it records now. If d has not passed, it requests a reconcile for the end of d.
func elapsed[K comparable](began map[K]time.Time, of K, now time.Time, d time.Duration, s *regionState) bool {
	at, ok := began[of]
	if !ok {
		began[of], at = now, now
	}
	left := d - now.Sub(at)
	if left > 0 {
		s.later(left)
	}
	return left <= 0
}
