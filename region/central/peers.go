// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// PeersOptions configure Peers. The zero value works for a program without replicas.
type PeersOptions struct {
	// Shards selects the Peers of this replica, by name; nil: all. Without it, two programs that observe different
	// states overwrite each other's status, at a limited rate.
	Shards Shards
	// Observer may be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Peers maintains the status of Peer objects: it decides which clusters are accepted as peers, and reports their
// health, version and regions.
type Peers struct {
	source  *Source
	ring    region.Directory
	plane   region.API
	opts    PeersOptions
	queue   *loop.Queue
	started atomic.Bool
	self    types.UID // of the plane; set before the first reconcile

	stakes exclusives

	mu      sync.Mutex
	records map[string]*record
}

// record is the state of one Peer. Only the worker of the Peer uses it, except for the fields under mu.
type record struct {
	look     *inspection
	failures int
	written  writing
	budget   loop.Budget

	mu       sync.Mutex
	observed *observation // while the peer is engaged
	seen     signs        // at the last call of changed
}

// maxBackoff bounds the delay between retries, and so how late the first retry comes once the plane is reachable again.
const maxBackoff = 15 * time.Second

// NewPeers makes a Peers for the Peer objects that source reads; ring must be a Ring of source. It does no I/O and
// starts nothing; see Start.
func NewPeers(source *Source, ring region.Directory, opts PeersOptions) (*Peers, error) {
	switch {
	case source == nil:
		return nil, errors.New("central: source is nil; make it with New")
	case source.plane == nil:
		return nil, errors.New("central: source is not made by New")
	case argument.Missing(ring):
		return nil, errors.New("central: ring is nil; make it of the source with region.NewRing")
	}
	p := &Peers{
		source: source, ring: ring, plane: source.plane, opts: opts,
		queue: loop.NewQueue(loop.QueueOptions{MaxBackoff: maxBackoff}), records: map[string]*record{},
	}
	source.listen(p.peerChanged)
	return p, nil
}

// Start maintains the status of all Peers, or of the Peers of this replica, until ctx ends, waits for its goroutines,
// then returns nil. The ring must run. Call it once.
func (p *Peers) Start(ctx context.Context) error {
	if p.source == nil {
		return errors.New("central: the Peers were not made by NewPeers")
	}
	ctx = logging.Into(ctx, p.opts.Logger, "peers")
	if p.started.Swap(true) {
		return errors.New("central: Peers.Start was called twice")
	}
	if !p.learnSelf(ctx) {
		return nil
	}
	select {
	case <-p.source.synced:
	case <-ctx.Done():
		return nil
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	directory := p.ring
	if p.opts.Shards != nil {
		directory = owned{Directory: p.ring, shards: p.opts.Shards}
	}
	wg.Go(func() { loop.Resharded(ctx, p.opts.Shards, p.addAll) })
	wg.Go(func() { _ = region.Engage(ctx, directory, p.observe) }) // returns nil when ctx has ended
	wg.Go(func() { p.pollHealth(ctx) })
	p.addAll()
	return p.queue.Start(ctx, p.work)
}

// learnSelf reads the UID of the plane, with retries. It returns false if ctx ends first.
func (p *Peers) learnSelf(ctx context.Context) bool {
	log := logging.From(ctx)
	return backoff.Retry(ctx, backoff.Doubling(500*time.Millisecond, 10*time.Second), func(ctx context.Context) (err error) {
		p.self, err = planeUID(ctx, p.plane)
		return err
	}, func(err error, delay time.Duration) {
		log.Error(err, "The UID of the central plane cannot be read", "again", delay.String())
	})
}

func (p *Peers) owns(name string) bool { return loop.OwnsKey(p.opts.Shards, name) }

func (p *Peers) addAll() {
	for _, k := range p.source.index.list() {
		p.queue.Add(k.peer.Name)
	}
}

// peerChanged is called after each change of a Peer or its Secret.
func (p *Peers) peerChanged(name string) {
	p.queue.Add(name)
	for _, other := range p.stakes.update(name, p.source) {
		p.queue.Add(other)
	}
}

// record returns the record of name, and creates it if needed.
func (p *Peers) record(name string) *record {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[name]
	if r == nil {
		r = &record{budget: newBudget()}
		p.records[name] = r
	}
	return r
}

// forget deletes the record of name, unless the peer is engaged: in this case, the end of the engagement enqueues name
// again.
func (p *Peers) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[name]; r != nil && r.observation() == nil {
		delete(p.records, name)
	}
}

func (r *record) observation() *observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.observed
}

// observe watches one peer while it is engaged.
func (p *Peers) observe(ctx context.Context, conn *region.Conn) error {
	name := string(conn.Peer())
	changed := func() { p.queue.Add(name) }
	o := newObservation(conn, changed)
	set := func(o *observation) {
		r := p.record(name)
		r.mu.Lock()
		r.observed = o
		r.mu.Unlock()
	}
	set(o)
	changed()
	o.run(ctx, changed)
	set(nil)
	changed()
	return nil
}

// work reconciles the status of one Peer.
func (p *Peers) work(ctx context.Context, name string) (time.Duration, error) {
	k, ok := p.source.index.get(name)
	if !ok || !p.owns(name) {
		p.forget(name)
		return 0, nil
	}
	r, peer := p.record(name), k.peer
	before := r.written.withWritten(peer)
	f := findings{kubeconfig: p.source.kubeconfig(peer), plane: p.self}
	for _, k := range p.source.index.list() {
		if k.peer.Name != name && k.peer.DeletionTimestamp == nil {
			f.others = append(f.others, k.peer)
		}
	}
	var again time.Duration
	if accepted(before) {
		r.look, r.failures = nil, 0
		f.uid = before.Status.ClusterUID
		if o := r.observation(); o != nil {
			f.health, f.healthKnown = o.conn.Health(), true
			o.fill(&f)
		}
	} else if peer.DeletionTimestamp == nil {
		again = p.lookAt(ctx, r, peer, &f)
	}
	if ctx.Err() != nil {
		return 0, nil
	}
	now := time.Now()
	status := statusOf(before, f, now)
	if wait, err := p.write(ctx, r, before, k.obj, status, now); wait > 0 || err != nil {
		return wait, err
	}
	return again, nil
}

// lookAt adds to f the result of the inspection of a cluster that is not accepted, and returns how long to wait until
// it is due again. It inspects the cluster only if the previous inspection is due again or used other credentials.
func (p *Peers) lookAt(ctx context.Context, r *record, peer *masterv1alpha1.Peer, f *findings) time.Duration {
	if !f.kubeconfig.usable {
		r.look = nil
		return 0
	}
	if l := r.look; l == nil || l.creds != f.kubeconfig.creds.String() || !time.Now().Before(l.next) {
		if l == nil || l.creds != f.kubeconfig.creds.String() {
			r.failures = 0
		}
		found := inspect(ctx, region.PeerName(peer.Name), f.kubeconfig.creds)
		wait := lookInterval
		if found.err != nil {
			r.failures++
			wait = jitter(backoff.After(r.failures, 500*time.Millisecond, lookInterval))
		} else {
			r.failures = 0
		}
		found.next = time.Now().Add(wait)
		r.look = &found
	}
	l := r.look
	f.uid, f.master, f.looked, f.missing = l.uid, l.master, l.looked, l.missing
	f.health, f.healthKnown = l.health(), true
	return max(time.Until(l.next), time.Millisecond)
}

// lookInterval is the time between inspections of a reachable cluster that is not accepted.
const lookInterval = 30 * time.Second
