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

// identities remembers which cluster answered for each peer, and judges them together.
// A Conn never changes its cluster, so each is asked once; each PeerSet that is read
// later is judged again. Safe for concurrent use.
type identities struct {
	turn chan struct{} // holds one: who asks all peers

	mu     sync.Mutex
	ring   string // once it is known for certain
	met    map[region.PeerName]meeting
	asked  map[region.PeerName]time.Time      // when a peer was asked last together with others
	judged map[string]protocol.Identification // nil if something has changed since
	unkept map[*region.Conn]bool              // clusters that cannot keep a ring's ID
}

// meeting is what the cluster behind a connection told of itself.
type meeting struct {
	conn   *region.Conn
	uid    types.UID
	denied error    // why uid is empty
	set    *readSet // nil if it has none
}

func newIdentities() *identities {
	return &identities{turn: make(chan struct{}, 1), met: map[region.PeerName]meeting{}, asked: map[region.PeerName]time.Time{}, unkept: map[*region.Conn]bool{}}
}

// standing says whether conn's cluster was met, and why its answers do not count.
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

// of is how the cluster behind a connection that was met presents itself.
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

// judge judges anew if something has changed. The lock is held.
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

// presences are what the clusters told of themselves. The lock is held.
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

// epochs are those of the peers' PeerSets as they were read last.
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

// enrolled says whether the cluster had a PeerSet when it was read last.
func (s *identities) enrolled(conn *region.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.met[conn.Peer()]
	return m.conn == conn && m.set != nil
}

// ownState is the state of a peer by its own PeerSet, as that was read last; empty if it
// has none.
func (s *identities) ownState(peer region.PeerName) v1alpha1.PeerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.met[peer].set
	if set == nil {
		return ""
	}
	return set.Spec.Self.State
}

// note remembers meetings, all at once: one that answers first is not judged alone.
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

// update notes the PeerSet of a cluster that was met; nil if it has none.
func (s *identities) update(conn *region.Conn, set *readSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.met[conn.Peer()]; ok && m.conn == conn && m.set != set {
		m.set = set
		s.met[conn.Peer()], s.judged = m, nil
	}
}

// ringless says whether conn's cluster cannot keep a ring's ID.
func (s *identities) ringless(conn *region.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unkept[conn]
}

// lackRing says whether a member has no ring ID.
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

// known is the ring, once it is known for certain.
func (s *identities) known() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring
}

func (s *identities) keepsNoRing(conn *region.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept[conn] = true
}

// due says whether a peer is to be asked together with another: if its connection was
// not met yet, or again if the one asked about was refuted, and not a moment ago.
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

// meet asks conn's cluster who it is, and with it those peers that were not asked
// yet: one alone cannot be told from another ring's of the same name. It waits for
// the others no longer than hasty.
func (c *Coordinator) meet(ctx context.Context, conn *region.Conn) error {
	ctx = region.WithAttempt(ctx, new(region.Attempt)) // what is asked here says nothing about the request that waits for it
	if err := c.meetAll(ctx, conn); err != nil {
		return err
	}
	if known, err := c.identities.standing(conn); known && err == nil {
		return nil
	}
	m, err := c.ask(ctx, conn)
	if err == nil {
		c.identities.note(m)
	}
	return err
}

func (c *Coordinator) meetAll(ctx context.Context, conn *region.Conn) error {
	select {
	case c.identities.turn <- struct{}{}:
		defer func() { <-c.identities.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	_, refuted := c.identities.standing(conn)
	snapshot := c.directory.Snapshot()
	if snapshot == nil {
		return nil
	}
	// Not cut short by the caller: those that were not heard would have no say.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hasty)
	defer cancel()
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		met []meeting
	)
	for p := range snapshot.Peers() {
		other, err := c.directory.Conn(p.Name)
		if err != nil || !c.identities.due(other, refuted != nil) {
			continue
		}
		wg.Go(func() {
			m, err := c.ask(ctx, other)
			if err != nil {
				return // it has no say
			}
			mu.Lock()
			defer mu.Unlock()
			met = append(met, m)
		})
	}
	wg.Wait()
	c.identities.note(met...)
	return nil
}

// ask asks a cluster who it is.
func (c *Coordinator) ask(ctx context.Context, conn *region.Conn) (meeting, error) {
	m := meeting{conn: conn}
	var wg sync.WaitGroup
	var unread error
	wg.Go(func() { m.set, unread = c.sets.read(ctx, conn) })
	m.uid, m.denied = conn.UID(ctx)
	wg.Wait()
	c.reach.heard(conn.Peer(), cmp.Or(m.denied, unread))
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
