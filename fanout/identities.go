// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// identities records which cluster answered for each peer, and decides for all these clusters
// together which of them belong to the ring. A Conn never changes its cluster, so each Conn is
// identified once. When a later read returns a changed PeerSet, identities decides again. It is
// safe for concurrent use.
type identities struct {
	turn chan struct{} // holds one element while a goroutine asks all peers

	mu              sync.Mutex
	ring            string // empty until it is known for certain
	met             map[region.PeerName]meeting
	asked           map[region.PeerName]time.Time      // when meetAll last asked a peer
	judged          map[string]protocol.Identification // nil if something has changed since the last judgement
	cannotStoreRing map[*region.Conn]bool              // connections to clusters that cannot store a ring's ID
}

// meeting is the identity that the cluster behind a connection reported.
type meeting struct {
	conn   *region.Conn
	uid    types.UID
	denied error    // why uid is empty
	set    *readSet // nil without a PeerSet
}

func newIdentities() *identities {
	return &identities{turn: make(chan struct{}, 1), met: map[region.PeerName]meeting{}, asked: map[region.PeerName]time.Time{}, cannotStoreRing: map[*region.Conn]bool{}}
}

// standing reports whether conn's cluster was identified. err is why the coordinator must not use
// the cluster's answers; nil if it may use them.
func (s *identities) standing(conn *region.Conn) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.met[conn.Peer()]
	if !ok || m.conn != conn {
		return false, nil
	}
	s.judge()
	switch i := s.judged[string(conn.Peer())]; i.Standing {
	case protocol.Believed, protocol.NotMember:
		return true, nil
	case protocol.UnknownIdentity:
		return true, m.denied
	default:
		return true, wrongPeer(conn.Peer(), i)
	}
}

// of returns the identity that the cluster behind conn reported. Its Problem is why the coordinator
// must not use the cluster's answers; nil if it may use them.
func (s *identities) of(conn *region.Conn) PeerIdentity {
	_, problem := s.standing(conn)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.met[conn.Peer()]
	out := PeerIdentity{UID: m.uid, Problem: problem}
	if m.set != nil {
		out.Set = m.set.PeerSet
	}
	return out
}

// judge decides again which clusters are right, if an identity has changed. The caller holds mu.
func (s *identities) judge() {
	if s.judged != nil {
		return
	}
	peers := s.presences()
	s.judged = protocol.Identify(s.ring, peers)
	if s.ring == "" {
		if s.ring = protocol.Ring(peers, s.judged); s.ring != "" {
			s.judged = protocol.Identify(s.ring, peers)
		}
	}
}

// presences returns the identities that the clusters reported. The caller holds mu.
func (s *identities) presences() map[string]protocol.Presence {
	peers := map[string]protocol.Presence{}
	for peer, m := range s.met {
		p := protocol.Presence{UID: string(m.uid)}
		if m.set != nil {
			p.HasSet, p.Set = true, m.set.view
		}
		peers[string(peer)] = p
	}
	return peers
}

// epochs returns the epochs of the peers' PeerSets as last read.
func (s *identities) epochs() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	epochs := map[string]int64{}
	for peer, m := range s.met {
		if m.set != nil {
			epochs[string(peer)] = m.set.view.Epoch
		}
	}
	return epochs
}

// enrolled reports whether the cluster had a PeerSet when it was last read.
func (s *identities) enrolled(conn *region.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.met[conn.Peer()]
	return m.conn == conn && m.set != nil
}

// ownState returns the state of a peer in its own PeerSet as last read; empty if it has none.
func (s *identities) ownState(peer region.PeerName) v1alpha1.PeerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.met[peer].set
	if set == nil {
		return ""
	}
	return set.Spec.Self.State
}

// note stores meetings together, so that the first one to arrive is not judged alone.
func (s *identities) note(meetings ...meeting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range meetings {
		peer := m.conn.Peer()
		if was, ok := s.met[peer]; !ok || was.conn != m.conn || was.uid != m.uid || was.set != m.set {
			s.met[peer], s.judged = m, nil
		}
	}
}

// update stores the PeerSet of an identified cluster; set is nil if the cluster has none.
func (s *identities) update(conn *region.Conn, set *readSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.met[conn.Peer()]; ok && m.conn == conn && m.set != set {
		m.set = set
		s.met[conn.Peer()], s.judged = m, nil
	}
}

// ringless reports whether conn's cluster cannot store a ring's ID.
func (s *identities) ringless(conn *region.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cannotStoreRing[conn]
}

// lackRing reports whether a member has no ring ID.
func (s *identities) lackRing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.met {
		if m.set != nil && m.set.view.Ring == "" && len(m.set.view.Members) > 0 {
			return true
		}
	}
	return false
}

// known returns the ID of the ring; empty until it is known for certain.
func (s *identities) known() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring
}

func (s *identities) keepsNoRing(conn *region.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cannotStoreRing[conn] = true
}

// due reports whether meetAll asks conn's peer now. meetAll asks a peer that was not identified
// yet. With again it also asks identified peers, because the cluster for which meetAll was called
// turned out to be the wrong one. due limits how often a peer is asked, and records the time.
func (s *identities) due(conn *region.Conn, again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.met[conn.Peer()]
	pause := reserve
	if ok && m.conn == conn {
		if !again {
			return false
		}
		pause = hasty
	}
	at, ok := s.asked[conn.Peer()]
	if ok && time.Since(at) < pause {
		return false
	}
	s.asked[conn.Peer()] = time.Now()
	return true
}

// meet identifies conn's cluster, and with it the peers that were not identified yet: a single
// peer cannot be distinguished from a peer of the same name in another ring. It waits for the
// other peers no longer than the duration hasty.
func (cs *clusters) meet(ctx context.Context, conn *region.Conn) error {
	ctx = region.WithAttempt(ctx, new(region.Attempt)) // the waiting request must not count these as its own attempts
	if err := cs.meetAll(ctx, conn); err != nil {
		return err
	}
	if known, err := cs.identities.standing(conn); known && err == nil {
		return nil
	}
	m, err := cs.ask(ctx, conn)
	if err == nil {
		cs.identities.note(m)
	}
	return err
}

func (cs *clusters) meetAll(ctx context.Context, conn *region.Conn) error {
	select {
	case cs.identities.turn <- struct{}{}:
		defer func() { <-cs.identities.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, refuted := cs.identities.standing(conn)
	snapshot := cs.directory.Snapshot()
	if snapshot == nil {
		return nil
	}
	// The caller's deadline does not apply: a slow peer would have no part in the decision which
	// clusters belong to the ring.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hasty)
	defer cancel()
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		met []meeting
	)
	for p := range snapshot.Peers() {
		other, err := cs.directory.Conn(p.Name)
		if err != nil || !cs.identities.due(other, refuted != nil) {
			continue
		}
		wg.Go(func() {
			m, err := cs.ask(ctx, other)
			if err != nil {
				return // only peers that answer take part in the decision
			}
			mu.Lock()
			defer mu.Unlock()
			met = append(met, m)
		})
	}
	wg.Wait()
	cs.identities.note(met...)
	return nil
}

// ask reads the UID and the PeerSet of a cluster.
func (cs *clusters) ask(ctx context.Context, conn *region.Conn) (meeting, error) {
	m := meeting{conn: conn}
	var wg sync.WaitGroup
	var unread error
	wg.Go(func() { m.set, unread = cs.sets.read(ctx, conn) })
	m.uid, m.denied = conn.UID(ctx)
	wg.Wait()
	cs.reach.noteSilence(conn.Peer(), cmp.Or(m.denied, unread))
	switch {
	case m.denied != nil && !errors.Is(m.denied, region.ErrIdentityUnknown):
		return m, m.denied
	case isAbsent(unread):
		m.set = nil
	case unread != nil:
		return m, unread
	}
	return m, nil
}
