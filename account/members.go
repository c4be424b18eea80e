// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// member is a peer that a Replicator watches.
type member struct {
	conn   *region.Conn
	copies *loop.Objects
	sets   *loop.Objects

	mu    sync.Mutex
	uid   types.UID // of its cluster; empty until it is read
	asked bool      // its UID was read, or a read has failed
	wrong error     // why its responses do not count
	since time.Time // when the watch began
}

// replica returns the peer's object, nil if it has none.
func (m *member) replica(key types.NamespacedName) *replica {
	obj, ok := m.copies.Get(key)
	if !ok {
		return nil
	}
	return unpack(obj)
}

// engage watches one peer until ctx ends.
func (r *Replicator) engage(ctx context.Context, c *region.Conn) error {
	m := &member{conn: c, since: time.Now(), wrong: errNotWatched}
	m.copies = loop.NewObjects(c.Dynamic(), r.kind.Resource, loop.ObjectsOptions{Strip: pack(r.kind), Changed: r.add, Flows: r.all})
	m.sets = loop.NewObjects(c.Dynamic(), peerSetsResource, loop.ObjectsOptions{
		Strip: r.rosters.pack, Changed: func(types.NamespacedName) { r.all() }, Flows: r.all,
	})
	r.mu.Lock()
	r.peers[c.Peer()] = m
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		if r.peers[c.Peer()] == m {
			delete(r.peers, c.Peer())
		}
		r.mu.Unlock()
		r.all()
	}()
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.copies.Start(ctx) })
	wg.Go(func() { _ = m.sets.Start(ctx) })
	wg.Go(func() { m.identify(ctx, r.all) })
	m.recognize(ctx, func(ctx context.Context) error { return r.coordinator.Identity().Recognize(ctx, c.Peer()) }, r.all)
	wg.Wait()
	return nil
}

// identify reads the UID of the peer's cluster, and retries until it succeeds.
func (m *member) identify(ctx context.Context, known func()) {
	backoff.Retry(ctx, backoff.Doubling(100*time.Millisecond, 10*time.Second), func(ctx context.Context) error {
		uid, err := m.askUID(ctx)
		m.mu.Lock()
		m.uid, m.asked = uid, true
		m.mu.Unlock()
		known()
		return err
	}, nil)
}

// recognizeEvery is how often the identity of a recognized peer is checked. The check sends no
// request while the identity holds.
const recognizeEvery = 10 * time.Second

// recognize checks repeatedly that the peer's cluster is the one that the ring knows. If the peer
// is another cluster, an object that is missing there may not have been removed.
func (m *member) recognize(ctx context.Context, ask func(context.Context) error, changed func()) {
	for delays := backoff.Doubling(200*time.Millisecond, recognizeEvery); ctx.Err() == nil; {
		err := ask(ctx)
		m.mu.Lock()
		differs := (err == nil) != (m.wrong == nil)
		m.wrong = err
		m.mu.Unlock()
		if differs {
			changed()
		}
		if err == nil {
			delays = backoff.Doubling(recognizeEvery, recognizeEvery)
		}
		if !backoff.Sleep(ctx, delays.Step()) {
			return
		}
	}
}

func (m *member) unrecognized() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// identifyTimeout bounds one read of a peer's UID.
const identifyTimeout = 10 * time.Second

func (m *member) askUID(ctx context.Context) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	return m.conn.UID(ctx)
}

// cluster returns the UID of the peer's cluster; empty if it is unknown. The result false means
// that the first read of the UID is still under way: no read has ended, and patience has not
// passed.
func (m *member) cluster() (types.UID, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uid, m.asked || time.Since(m.since) > patience
}

var errNotWatched = errors.New("it is not watched yet")

// err returns why the state of the peer is stale; nil if it is fresh.
func (m *member) err() error {
	if m == nil {
		return errNotWatched
	}
	if err := cmp.Or(m.copies.Err(), m.sets.Err(), m.unrecognized()); err != nil {
		return err
	}
	if h := m.conn.Health(); h.State == region.Unhealthy {
		return cmp.Or(h.Err, region.ErrUnavailable)
	}
	return nil
}

// attend requeues all objects when a peer becomes reachable or unreachable without a watch event.
func (r *Replicator) attend(ctx context.Context) {
	before := map[region.PeerName]bool{}
	for backoff.Sleep(ctx, time.Second) {
		now := map[region.PeerName]bool{}
		for name, m := range r.members() {
			now[name] = m.err() == nil
		}
		if !maps.Equal(before, now) {
			before = now
			r.all()
		}
	}
}

func (r *Replicator) members() map[region.PeerName]*member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.peers)
}

// observe returns the cached state of all peers and of their objects of one key, by peer. It does no
// I/O.
func (r *Replicator) observe(key types.NamespacedName) []observation {
	members := r.members()
	snapshot := r.directory.Snapshot()
	observed := make([]observation, 0, snapshot.Len())
	others := sync.OnceValue(func() *roster { return rosterOf(members) })
	for p := range snapshot.Peers() {
		m := members[p.Name]
		s := observation{peer: p.Name, err: m.err()}
		if m != nil {
			s.copy = m.replica(key)
		}
		s.member = stateIn(p.Name, m, others)
		observed = append(observed, s)
	}
	return observed
}

// patience is how long a peer may take to report its UID. After that the peer counts as another
// cluster than the central plane's, so a peer that hangs delays no other for longer.
const patience = 3 * time.Second

// itself returns the peer whose cluster is the central plane's own; empty if no such peer was
// found. known is false if such a peer may still be found: the UID of the plane or of a peer is
// still being read, or the watch of a peer is about to start.
func (r *Replicator) itself() (peer region.PeerName, known bool) {
	r.mu.Lock()
	plane := r.planeUID
	r.mu.Unlock()
	if plane == "" {
		return "", false
	}
	members := r.members()
	known = true
	for p := range r.directory.Snapshot().Peers() {
		m, ok := members[p.Name]
		if !ok {
			// The peer is not watched. Either its watch is about to start, or the peer has no
			// connection at all, for instance because of invalid credentials.
			if _, err := r.directory.Conn(p.Name); err == nil {
				known = false
			}
			continue
		}
		uid, asked := m.cluster()
		if uid == plane {
			return p.Name, true
		}
		known = known && asked
	}
	return "", known
}
