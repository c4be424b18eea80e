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
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Options configure a Replicator. The zero value replicates Accounts.
type Options struct {
	// Kind is the kind to replicate. It must exist Everywhere, and be the same as in the Coordinator's Options.Kinds.
	// The zero value is Kind().
	Kind fanout.Kind
	// Agreed means that content is decided once, as by Coordinator.Agree: the peers' content wins. If the content of a
	// central object differs, the Replicator changes nothing in the peers, and reports that the object is not Ready and
	// which fields differ.
	Agreed bool
	// Report returns the part of obj's status in the central plane that this Replicator owns. The Replicator applies
	// this part under the field manager ReplicatorFieldManager. Report must be pure. Nil: a v1alpha1.AccountStatus for
	// Accounts, and no status for other kinds, whose state Observer and Replicator.Presence report. ReportConditions is
	// a Report for types with conditions.
	Report func(obj *unstructured.Unstructured, p Presence) (map[string]any, error)
	// FieldManager is the field manager of the content in the peers; empty:
	// ReplicatorFieldManager.
	FieldManager string
	// RemovalCap holds deletions in the central plane that look like an accident, as the RemovalCap of a Coordinator
	// holds deletions in a peer. The objects stay in all peers until a person releases their deletion. Zero: if more
	// than 5 objects and more than 10 % of the plane's objects are deleted at about the same time, their deletions are
	// held.
	RemovalCap fanout.RemovalCap
	// Shard selects the objects of this replica, by keys "KIND/NAME" or "KIND/NAMESPACE/NAME";
	// nil: all.
	Shard Shard
	// Workers is how many objects are reconciled at once; zero: 8. Beside them, four times as
	// many may wait for unreachable peers.
	Workers int
	// Observer receives events; nil: none.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// ReplicatorFieldManager is the field manager of a Replicator's writes in the central plane, of the condition Orphaned
// in the peers, and by default of the content in the peers.
const ReplicatorFieldManager = "atoll-replicator"

// Finalizer is the finalizer of a central object whose plane is no peer. A Replicator adds it before any peer gets the
// object, and removes it after every peer has confirmed that nothing of the object is left.
const Finalizer = "atoll.dev/replicated"

// Replicator keeps the objects of a central plane present in all peers. See the package's
// documentation, Replication, for its guarantees. Safe for concurrent use; any number may run, in
// any number of processes.
type Replicator struct {
	plane       region.API
	directory   region.Directory
	coordinator *fanout.Coordinator
	kind        fanout.Kind
	opts        Options
	objects     *loop.Objects
	queue       *loop.Queue
	places      chan struct{} // has one entry for each worker that does not wait for an unreachable peer
	rosters     rosters
	stirred     chan struct{} // has an entry if all objects are to be requeued
	postponed   postponed

	mu        sync.Mutex
	planeUID  types.UID // of the central plane's cluster; empty until it is read
	peers     map[region.PeerName]*member
	presences map[types.NamespacedName]Presence
	settling  map[types.NamespacedName]pausing
	budgets   map[types.NamespacedName]*loop.Budget // of writes of a status
}

// NewReplicator returns a Replicator. It does no I/O; see Start. The Replicator writes the peers' objects through c, so
// these objects are like objects that were added by fan-out. c must know the kind, and c.Start must run somewhere,
// because it updates peers that were unreachable. plane may itself be one of d's peers. NewReplicator fails on a nil
// argument, or a kind that does not exist Everywhere.
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
	r.objects = loop.NewObjects(plane.Dynamic(), r.kind.Resource, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Changed: r.add, Flows: r.all,
	})
	return r, nil
}

// Start runs until ctx ends, waits for all that it started, then returns nil. The Replicator writes nothing if nothing
// differs. Call Start once.
func (r *Replicator) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, r.opts.Logger, "replicator")
	var wg sync.WaitGroup
	defer wg.Wait()
	// Caches and Engage retry errors until ctx ends.
	wg.Go(func() { _ = r.objects.Start(ctx) })
	wg.Go(func() { _ = region.Engage(ctx, r.directory, r.engage) })
	wg.Go(func() {
		for range r.directory.Watch(ctx) {
			r.all()
		}
	})
	wg.Go(func() { r.attend(ctx) })
	wg.Go(func() { r.rouse(ctx) })
	wg.Go(func() { loop.Resharded(ctx, r.opts.Shard, r.all) })
	wg.Go(func() { r.identify(ctx) })
	return r.queue.Start(ctx, r.work)
}

// Presence returns the last known state of the object in the peers. It does no I/O. ok is false
// if the object is not in the central plane, belongs to another replica's shard, or was not
// reconciled yet.
func (r *Replicator) Presence(key types.NamespacedName) (p Presence, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok = r.presences[key]
	return p, ok
}

func (r *Replicator) add(key types.NamespacedName) { r.queue.Add(loop.KeyText(key)) }

// all requeues every object. It does not block.
func (r *Replicator) all() {
	select {
	case r.stirred <- struct{}{}:
	default:
	}
}

// lull is the least time between two requeues of all objects. When a thousand peers start, each of
// them calls the method all several times.
const lull = 100 * time.Millisecond

// rouse requeues all objects after a call of the method all, at most once per lull.
func (r *Replicator) rouse(ctx context.Context) {
	for {
		select {
		case <-r.stirred:
		case <-ctx.Done():
			return
		}
		for _, obj := range r.objects.List() {
			r.add(loop.KeyOf(obj))
		}
		for key := range r.postponed.take() {
			r.add(key)
		}
		if !backoff.Sleep(ctx, lull) {
			return
		}
	}
}

// identify reads the UID of the central plane's cluster, so that a peer with the same cluster is
// recognized.
func (r *Replicator) identify(ctx context.Context) {
	log := logging.From(ctx)
	backoff.Retry(ctx, backoff.Doubling(100*time.Millisecond, 10*time.Second), func(ctx context.Context) error {
		ns, err := r.plane.Dynamic().Resource(namespacesResource).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.planeUID = ns.GetUID()
		r.mu.Unlock()
		r.all()
		return nil
	}, func(err error, delay time.Duration) {
		log.Info("Cannot read the identity of the central plane", "error", err.Error(), "again", delay.String())
	})
}

// found records p, and calls the Observer if the Presence has changed.
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

// budget returns the budget of writes of one object's status. It bounds the writes when many peers
// become reachable or unreachable one after the other.
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

// settle is the pause after an operation on an object, in which the caches come to show its effect.
// After failed operations the pause doubles, up to slowest, because each failed operation writes to
// all peers and is undone.
const (
	settle  = 2 * time.Second
	slowest = time.Minute
)

// pausing is a pause in the operations on one object.
type pausing struct {
	until  time.Time
	length time.Duration
	of     string // digest of the content whose operation failed; other content does not wait
}

func (r *Replicator) acted(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settling[key] = pausing{until: time.Now().Add(settle)}
}

// pauseAfterFailure records a failed operation with the content of digest.
func (r *Replicator) pauseAfterFailure(key types.NamespacedName, digest string) {
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

func (r *Replicator) endPause(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.settling, key)
}
