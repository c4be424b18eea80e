// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Options configure a Replicator. The zero value replicates Accounts.
type Options struct {
	// Kind is what is replicated: a kind that exists Everywhere, as the Coordinator's
	// Options.Kinds have it. The zero value is Kind().
	Kind fanout.Kind
	// Agreed says that content is decided once, as Coordinator.Agree does it: what
	// the peers hold wins, and a central object that differs is not Ready, says in
	// which fields, and changes nothing.
	Agreed bool
	// Report returns the status that obj, as it was read, is to have in the central
	// plane: what this Replicator owns of it, applied under the field manager
	// ReplicatorFieldManager. It must be pure. Nil reports Accounts as
	// AccountStatus has it, and nothing in objects of other kinds, where the
	// Observer and Presence tell; ReportConditions is for types with conditions.
	Report func(obj *unstructured.Unstructured, p Presence) (map[string]any, error)
	// FieldManager owns the content's fields in the peers. Zero means
	// ReplicatorFieldManager.
	FieldManager string
	// RemovalCap stops deletions in the central plane that look like an accident, as
	// the Coordinator's stops those in a peer: what exceeds it stays in all peers. Zero:
	// more than 5 objects and 10 % of the plane's are held.
	RemovalCap fanout.RemovalCap
	// Shard says which objects this replica works on, by keys "KIND/NAME" or
	// "KIND/NAMESPACE/NAME"; nil: all.
	Shard Shard
	// Workers is how many objects are worked on at once; zero: 8. Beside them, four
	// times as many may wait for peers that do not answer.
	Workers int
	// Observer receives what happens. Nil means nobody.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// ReplicatorFieldManager owns what a Replicator writes in the central plane, and
// the content in the peers.
const ReplicatorFieldManager = "atoll-replicator"

// Finalizer stands on each object of a central plane that a Replicator has brought
// to the peers, until every peer has confirmed that it is gone there.
const Finalizer = "atoll.dev/replicated"

// Replicator keeps the objects of a central plane present in all peers. See the
// package's documentation, Replication, for what it promises. Safe for concurrent
// use; any number may run, in any number of processes.
type Replicator struct {
	plane       region.API
	directory   region.Directory
	coordinator *fanout.Coordinator
	kind        fanout.Kind
	opts        Options
	wishes      *loop.Objects
	queue       *loop.Queue
	places      chan struct{} // one is in it for each worker that does not wait for a silent peer
	rosters     rosters
	stirred     chan struct{} // holds one if all objects are to be looked at

	mu        sync.Mutex
	planeUID  types.UID // of the central plane's cluster; empty until it is known
	peers     map[region.PeerName]*member
	presences map[types.NamespacedName]Presence
	settling  map[types.NamespacedName]pausing
	budgets   map[types.NamespacedName]*loop.Budget // of writes of a status
}

// NewReplicator checks its arguments and does no I/O; see Start. It works through
// c's protocol, so that objects of a central plane and those that were added by
// fan-out are the same; c must know the kind, and c.Start must run somewhere: it
// brings along peers that were away. plane may itself be one of d's peers.
func NewReplicator(plane region.API, d region.Directory, c *fanout.Coordinator, opts Options) (*Replicator, error) {
	switch {
	case argument.Missing(plane):
		return nil, errors.New("account: plane is nil: pass region.APIFor(...) or a *region.Conn")
	case argument.Missing(d):
		return nil, errors.New("account: directory is nil: pass a region.Ring or region.Fixed(...)")
	case c == nil:
		return nil, errors.New("account: coordinator is nil: pass what fanout.New returns")
	}
	if opts.Kind.Kind == "" {
		opts.Kind = Kind()
	}
	if opts.Kind.Mode != fanout.Everywhere {
		return nil, fmt.Errorf("account: Options.Kind: %s exists %s: only what exists Everywhere can be replicated", opts.Kind.Kind, opts.Kind.Mode)
	}
	if opts.Report == nil && opts.Kind.Resource == resource {
		opts.Report = reportAccount
	}
	if opts.FieldManager == "" {
		opts.FieldManager = ReplicatorFieldManager
	}
	if opts.Workers <= 0 {
		opts.Workers = 8
	}
	r := &Replicator{
		plane: plane, directory: d, coordinator: c, kind: opts.Kind, opts: opts,
		queue:     loop.NewQueue(loop.QueueOptions{Workers: 5 * opts.Workers}),
		places:    make(chan struct{}, opts.Workers),
		stirred:   make(chan struct{}, 1),
		peers:     map[region.PeerName]*member{},
		presences: map[types.NamespacedName]Presence{},
		settling:  map[types.NamespacedName]pausing{},
		budgets:   map[types.NamespacedName]*loop.Budget{},
	}
	r.wishes = loop.NewObjects(plane.Dynamic(), r.kind.Resource, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Changed: r.add, Flows: r.all,
	})
	return r, nil
}

// Start works until ctx ends, waits for all it started, then returns nil. Where all
// is as it should be it writes nothing. Call it once.
func (r *Replicator) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, r.opts.Logger, "replicator")
	var wg sync.WaitGroup
	defer wg.Wait()
	// Objects go on through errors until ctx ends, and so does Engage.
	wg.Go(func() { _ = r.wishes.Start(ctx) })
	wg.Go(func() { _ = region.Engage(ctx, r.directory, r.engage) })
	wg.Go(func() {
		for range r.directory.Watch(ctx) {
			r.all()
		}
	})
	wg.Go(func() { r.attend(ctx) })
	wg.Go(func() { r.rouse(ctx) })
	wg.Go(func() { resharded(ctx, r.opts.Shard, r.all) })
	wg.Go(func() { r.identify(ctx) })
	return r.queue.Start(ctx, r.work)
}

// Presence returns how the object of that key was last found in the peers. It does
// no I/O. ok is false if it is not in the central plane, is another replica's, or
// was not looked at yet.
func (r *Replicator) Presence(key types.NamespacedName) (p Presence, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok = r.presences[key]
	return p, ok
}

func (r *Replicator) add(key types.NamespacedName) { r.queue.Add(loop.KeyText(key)) }

// all asks for work on every object. It does not block.
func (r *Replicator) all() {
	select {
	case r.stirred <- struct{}{}:
	default:
	}
}

// lull is the least time between two looks at everything. When a thousand peers come,
// each of them gives several reasons for one.
const lull = 100 * time.Millisecond

// rouse does what all asks for.
func (r *Replicator) rouse(ctx context.Context) {
	for {
		select {
		case <-r.stirred:
		case <-ctx.Done():
			return
		}
		for _, obj := range r.wishes.List() {
			r.add(loop.KeyOf(obj))
		}
		if !pause(ctx, lull) {
			return
		}
	}
}

// identify finds out which cluster the central plane is, so that a peer which is
// the same one is recognized.
func (r *Replicator) identify(ctx context.Context) {
	log := logging.From(ctx)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		ns, err := r.plane.Dynamic().Resource(namespacesResource).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			r.mu.Lock()
			r.planeUID = ns.GetUID()
			r.mu.Unlock()
			r.all()
			return
		}
		if ctx.Err() == nil {
			log.Info("Central plane does not say who it is", "error", err.Error())
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// pause waits for d, and returns false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// found keeps p and tells the Observer if it is news.
func (r *Replicator) found(ctx context.Context, p Presence) {
	r.mu.Lock()
	was, ok := r.presences[p.Key]
	r.presences[p.Key] = p
	r.mu.Unlock()
	if !ok || !reflect.DeepEqual(was, p) {
		r.opts.Observer.changed(ctx, p)
	}
}

func (r *Replicator) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.presences, key)
	delete(r.settling, key)
	delete(r.budgets, key)
}

// budget is that of writes of one object's status: when a thousand peers come or go one
// after the other, the status is not written for each of them.
func (r *Replicator) budget(key types.NamespacedName) *loop.Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.budgets[key]
	if b == nil {
		b = new(loop.NewBudget(4, time.Second))
		r.budgets[key] = b
	}
	return b
}

// settle gives what was done time to show in the copies of the peers. After operations that came to nothing the pause
// doubles, up to slowest: each of them writes to all peers and takes it back.
const (
	settle  = 2 * time.Second
	slowest = time.Minute
)

// pausing is an object for which nothing is done for a while.
type pausing struct {
	until  time.Time
	length time.Duration
	of     string // the content whose operation came to nothing; another content does not wait
}

func (r *Replicator) acted(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settling[key] = pausing{until: time.Now().Add(settle)}
}

// vain notes that the operation which brings the content of digest came to nothing.
func (r *Replicator) vain(key types.NamespacedName, digest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	length := settle
	if was := r.settling[key]; was.of == digest {
		length = min(max(2*was.length, settle), slowest)
	}
	r.settling[key] = pausing{until: time.Now().Add(length), length: length, of: digest}
}

func (r *Replicator) pausing(key types.NamespacedName) pausing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settling[key]
}

func (r *Replicator) settled(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.settling, key)
}
