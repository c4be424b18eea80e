// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
)

// Ring keeps the peers of a Source connected and probes their health. It is a Directory, safe for concurrent use. A
// failing peer delays no other: each has its own goroutine, timeouts and backoff.
type Ring struct {
	src     Source
	opts    Options
	started atomic.Bool
	synced  chan struct{}
	view    atomic.Pointer[view]

	mu       sync.Mutex
	clusters map[types.UID]*member // the first member that reached each cluster
}

// Options configure a Ring. The zero value works.
type Options struct {
	Probe    ProbeOptions
	Drain    time.Duration // how long requests and streams with replaced credentials may continue; zero: 5 minutes
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// view is the state of a Ring at one time. It is immutable.
type view struct {
	snapshot *Snapshot
	members  map[PeerName]*member
	next     chan struct{} // closed when there is a newer view
}

// NewRing makes a Ring of the peers that src names. It does no I/O and starts nothing; see Start.
func NewRing(src Source, opts Options) (*Ring, error) {
	if src == nil {
		return nil, errors.New("ring: Source is nil; use FromPeers, FromDir or FromFile")
	}
	if err := opts.Probe.complete(); err != nil {
		return nil, err
	}
	r := &Ring{src: src, opts: opts, synced: make(chan struct{}), clusters: make(map[types.UID]*member)}
	r.view.Store(&view{snapshot: emptySnapshot(), next: make(chan struct{})})
	return r, nil
}

// Start runs until ctx ends, waits for all its goroutines, then returns nil. It returns the Source's error if the
// Source can never publish again. Call it once.
func (r *Ring) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, r.opts.Logger, "ring")
	if r.src == nil {
		return errors.New("ring: it was not made by NewRing")
	}
	if r.started.Swap(true) {
		return errors.New("ring: Start was called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	latest := make(chan *Snapshot, 1)
	var publishing sync.Mutex
	publish := func(s *Snapshot) {
		if s == nil {
			return
		}
		publishing.Lock()
		defer publishing.Unlock()
		select {
		case <-latest: // an older one that was not received yet
		default:
		}
		latest <- s
	}
	ended := make(chan error, 1)
	wg.Go(func() { ended <- r.src.Run(ctx, publish) })
	for {
		select {
		case s := <-latest:
			r.apply(ctx, &wg, s)
		case err := <-ended:
			select {
			case s := <-latest:
				r.apply(ctx, &wg, s)
			default:
			}
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("ring: %w", err)
			}
			// The source has published its last Snapshot.
			ended = nil
		case <-ctx.Done():
			return nil
		}
	}
}

// apply updates the members to match s, then publishes s and the members at once.
func (r *Ring) apply(ctx context.Context, wg *sync.WaitGroup, s *Snapshot) {
	old := r.view.Load()
	if isClosed(r.synced) && s.equal(old.snapshot) {
		return
	}
	next := &view{snapshot: s, members: make(map[PeerName]*member, s.Len()), next: make(chan struct{})}
	var joining []func()
	for p := range s.Peers() {
		m, stays := old.member(p)
		if !stays {
			m = r.newMember(p)
		}
		next.members[p.Name] = m
		switch {
		case stays:
		case m.err != nil:
			logging.From(ctx).Error(m.err, "Peer cannot be connected", "peer", p.Name)
		default:
			memberCtx, leave := context.WithCancel(ctx)
			m.leave = leave
			joining = append(joining, func() { m.run(memberCtx) })
		}
	}
	r.view.Store(next)
	close(old.next)
	if !isClosed(r.synced) {
		close(r.synced)
	}
	for name, m := range old.members {
		if next.members[name] != m && m.conn != nil {
			m.leave()
			m.conn.retire()
			r.release(m)
		}
	}
	// Start the joining members last: a cluster may rejoin under another name, and its former member must be released
	// first.
	for _, run := range joining {
		wg.Go(run)
	}
}

// member returns the present member of peer p. If the credentials of p are new, it offers them to this member. stays is
// false if p needs a new member: there is no member yet, p is another cluster or its credentials are withheld, or a
// member without a connection gets new credentials.
func (v *view) member(p *Peer) (m *member, stays bool) {
	m = v.members[p.Name]
	if m == nil {
		return nil, false
	}
	before, _ := v.snapshot.Peer(p.Name)
	unchanged := before != nil && before.Credentials.equal(p.Credentials)
	if m.conn == nil {
		return m, unchanged
	}
	if p.Credentials.withheld || !m.conn.mayReach(p.UID) {
		return nil, false
	}
	if !unchanged {
		m.offer(p.Credentials)
	}
	return m, true
}

// mayReach reports whether c may be the connection to the cluster with this UID: uid is empty, c's own UID is not
// known, or both are equal. If c did not know its UID, mayReach sets it to a uid that is not empty, so that the peer
// need not reconnect.
func (c *Conn) mayReach(uid types.UID) bool {
	return uid == "" || c.uid.CompareAndSwap(nil, &uid) || *c.uid.Load() == uid
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// claim records that m reaches the cluster uid, unless another member reached it first. It returns the name of the peer
// that reached it first, which may be m's.
func (r *Ring) claim(uid types.UID, m *member) PeerName {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.clusters[uid]; !ok && !m.released {
		r.clusters[uid] = m
	}
	if first, ok := r.clusters[uid]; ok {
		return first.conn.Peer()
	}
	return m.conn.Peer()
}

// release removes the cluster of m from the record, and keeps a running probe from adding it again.
func (r *Ring) release(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.released = true
	maps.DeleteFunc(r.clusters, func(_ types.UID, holder *member) bool { return holder == m })
}

// Synced returns a channel that is closed when the first Snapshot is in use. It does not wait for any peer to respond.
func (r *Ring) Synced() <-chan struct{} { return r.synced }

// Snapshot returns the current view. It is empty before the first Snapshot is in use.
func (r *Ring) Snapshot() *Snapshot {
	if v := r.view.Load(); v != nil {
		return v.snapshot
	}
	return emptySnapshot() // for a Ring that NewRing did not make
}

// Watch yields the current Snapshot, as soon as there is one, then the newest after each change, until ctx ends.
func (r *Ring) Watch(ctx context.Context) iter.Seq[*Snapshot] {
	return func(yield func(*Snapshot) bool) {
		select {
		case <-r.synced:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			v := r.view.Load()
			if !yield(v.snapshot) {
				return
			}
			select {
			case <-v.next:
			case <-ctx.Done():
			}
		}
	}
}

// Conn returns the connection to a peer. Errors are *Error: ErrUnknownPeer, or why the Source has no usable credentials
// for it. It does not check that the peer is reachable. A Conn rejects requests with ErrUnknownPeer once its peer has
// left.
func (r *Ring) Conn(name PeerName) (*Conn, error) {
	var m *member
	if v := r.view.Load(); v != nil {
		m = v.members[name]
	}
	if m == nil {
		return nil, &Error{Peer: name, Op: "connect", Err: ErrUnknownPeer}
	}
	return m.conn, m.err
}
