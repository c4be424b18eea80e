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

// Ring keeps the peers of a Source connected and probes their health. It is a Directory, safe for concurrent use.
// One peer's trouble delays no other: each has its own goroutine, its own time limits and its own back-off.
type Ring struct {
	src     Source
	opts    Options
	started atomic.Bool
	synced  chan struct{}
	view    atomic.Pointer[view]

	mu       sync.Mutex
	clusters map[types.UID]*member // who was first to reach a cluster
}

// Options adjust a Ring. The zero value works.
type Options struct {
	Probe    ProbeOptions
	Drain    time.Duration // how long streams of replaced credentials may go on; zero: 5 minutes
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// view is what a Ring shows at one time. It is immutable.
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

// Start runs until ctx ends, waits for all it started, then returns nil. It returns the Source's error if that can never
// publish again. Call it once.
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
		case <-latest: // an older one that nobody has seen
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
			// A source that has said all it will ever say.
			ended = nil
		case <-ctx.Done():
			return nil
		}
	}
}

// apply brings the members in line with s, then shows both at once.
func (r *Ring) apply(ctx context.Context, wg *sync.WaitGroup, s *Snapshot) {
	old := r.view.Load()
	if isClosed(r.synced) && s.equal(old.snapshot) {
		return
	}
	log := logging.From(ctx)
	next := &view{snapshot: s, members: make(map[PeerName]*member, s.Len()), next: make(chan struct{})}
	var joining []func()
	for p := range s.Peers() {
		m := old.members[p.Name]
		before, _ := old.snapshot.Peer(p.Name)
		unchanged := before != nil && before.Credentials.equal(p.Credentials)
		switch {
		case m != nil && m.conn != nil && !p.Credentials.withheld && m.conn.is(p.UID):
			if !unchanged {
				m.offer(p.Credentials)
			}
		case m != nil && m.conn == nil && unchanged:
			// It was said before why.
		default:
			m = r.newMember(p)
			if m.err != nil {
				log.Error(m.err, "Peer cannot be connected", "peer", p.Name)
				break
			}
			memberCtx, leave := context.WithCancel(ctx)
			m.leave = leave
			joining = append(joining, func() { m.run(memberCtx) })
		}
		next.members[p.Name] = m
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
	// Last, because a cluster may come back under another name.
	for _, run := range joining {
		wg.Go(run)
	}
}

// is says whether uid may be the cluster of c. Who learns only now which cluster a peer is need not connect anew.
func (c *Conn) is(uid types.UID) bool {
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

// claim notes that m reaches the cluster uid, and says which peer was there before; m's own if none was.
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

// release forgets which cluster m reaches, also what a probe finds that is still under way.
func (r *Ring) release(m *member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.released = true
	maps.DeleteFunc(r.clusters, func(_ types.UID, holder *member) bool { return holder == m })
}

// Synced is closed when the first Snapshot is in place. It does not wait for any peer to answer.
func (r *Ring) Synced() <-chan struct{} { return r.synced }

// Snapshot returns the present view, empty before the first one.
func (r *Ring) Snapshot() *Snapshot {
	if v := r.view.Load(); v != nil {
		return v.snapshot
	}
	return emptySnapshot() // of a Ring that NewRing did not make
}

// Watch yields the present Snapshot, as soon as there is one, then the newest after each change, until ctx ends.
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
// for it. Whether the peer answers shows in its use. A Conn refuses requests with ErrUnknownPeer once its peer has left.
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
