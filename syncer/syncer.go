// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// manager is the field manager of writes downstream.
const manager = synctarget.SyncerManager

// Syncer syncs the objects that are labelled for one target from an upstream API server to a downstream one, and
// their status back. It may run anywhere, since it needs nothing but the two APIs.
type Syncer struct {
	up, down region.API
	given    Options // as passed to New
	opts     Options
	queue    *loop.Queue
	// add and addBehind add a key to the queue. Diff replaces them.
	add, addBehind func(key string)
	dry            bool // writes are dry runs
	lease          *lease
	started        atomic.Bool

	// finalizer and the managers identify this syncer upstream, where there may be syncers of other targets.
	finalizer, upManager, statusManager, fieldsManager, bornManager, conditionManager string

	instance        string    // names this process in logs and messages
	begun           time.Time // when Start was called
	otherSyncers    *otherSyncers
	unsyncedObjects *unsyncedObjects

	autoscalers *autoscalers
	declared    []Rule // by declarations

	upstreamUID types.UID // set before the first reconcile

	mu            sync.Mutex
	owner         string
	downstreamUID types.UID
	controllers   map[string]*controller // by resource.group
	unsynced      map[schema.GroupVersionResource]Reason
	compared      bool           // a comparison of the schemas was tried
	namespaced    *namespaceSync // nil: namespaces are only created when objects need them
}

// New returns a Syncer, or an error if an option is invalid. It does no I/O and starts nothing; see Start.
func New(up, down region.API, opts Options) (*Syncer, error) {
	switch {
	case argument.Missing(up):
		return nil, errNoUpstream
	case argument.Missing(down):
		return nil, errors.New("syncer: the downstream API is nil: pass what region.APIFor returns")
	}
	if err := opts.checkPermit(); err != nil {
		return nil, fmt.Errorf("syncer: %w", err)
	}
	return newSyncer(up, down, opts)
}

var (
	errNoUpstream = errors.New("syncer: the upstream API is nil: pass what region.APIFor returns")
	errNotMade    = errors.New("syncer: the Syncer was not made by New")
)

// newSyncer does the same as New, but does not check up, down and Permit.
func newSyncer(up, down region.API, given Options) (*Syncer, error) {
	opts, err := given.complete()
	if err != nil {
		return nil, fmt.Errorf("syncer: %w", err)
	}
	for i, t := range opts.Transform {
		if t == nil {
			return nil, fmt.Errorf("syncer: options: Transform[%d] is nil", i)
		}
	}
	for i, r := range opts.Rules {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("syncer: options: Rules[%d]: %w", i, err)
		}
	}
	declared, err := opts.types()
	if err != nil {
		return nil, fmt.Errorf("syncer: options: %w", err)
	}
	queue := loop.NewQueue(loop.QueueOptions{Workers: opts.Workers})
	s := &Syncer{
		up: up, down: down, given: given, opts: opts,
		lease: newLease(opts.Lease),
		queue: queue, add: queue.Add, addBehind: queue.AddBehind,
		finalizer: v1alpha1.FinalizerPrefix + opts.Target,
		upManager: manager + "-" + opts.Target, statusManager: manager + "-status-" + opts.Target, fieldsManager: manager + "-fields-" + opts.Target,
		bornManager: manager + "-upsync-" + opts.Target, conditionManager: manager + "-condition-" + opts.Target,
		instance:    fmt.Sprintf("%08x", rand.Uint32()),
		controllers: map[string]*controller{}, unsynced: map[schema.GroupVersionResource]Reason{}, autoscalers: newAutoscalers(declared), declared: declaredRules(declared),
	}
	s.otherSyncers, s.unsyncedObjects = &otherSyncers{syncer: s}, &unsyncedObjects{syncer: s}
	return s, nil
}

// Start syncs until ctx ends, waits for its workers, then returns nil. While a server is unreachable or a type is
// refused, it reports that in Status and retries. It returns an error at once if both APIs reach the same cluster.
// When it ends, objects stay as they are on both sides. Call it once.
func (s *Syncer) Start(ctx context.Context) error {
	if s.up == nil {
		return errNotMade
	}
	ctx = logging.Into(ctx, s.opts.Logger, "syncer")
	if s.started.Swap(true) {
		return errors.New("syncer: Start was called twice")
	}
	ctx = logr.NewContext(ctx, logging.From(ctx).WithValues("target", s.opts.Target, "instance", s.instance))
	s.begun = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	if s.opts.Heartbeat > 0 {
		nodes := &capacity{syncer: s}
		all.Go(func() { heartbeat{s, nodes}.run(ctx) })
		all.Go(func() { finishReturns(ctx, s) })
		if s.opts.Capacity > 0 {
			all.Go(func() { nodes.run(ctx) })
		}
	}
	if err := s.identify(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	s.keepNamespaces()
	all.Go(func() { _ = s.queue.Start(ctx, s.work) })
	if s.opts.NamespaceSync.enabled() {
		all.Go(func() { s.namespaces().start(ctx) })
	}
	if s.opts.Unscheduled > 0 {
		all.Go(func() { (&podCounter{syncer: s}).start(ctx) })
	}
	if s.opts.Conditions || s.opts.Heartbeat > 0 {
		all.Go(func() { s.unsyncedObjects.run(ctx) })
	}
	typeDiscovery{s}.run(ctx)
	return nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// identify finds out which clusters the two APIs reach. It retries until ctx ends; then it returns nil. It returns
// an error if both APIs reach the same cluster.
func (s *Syncer) identify(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		err := s.identifyOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errOneCluster):
			return wrap("syncer", err)
		case err == nil:
			return nil
		}
		logging.From(ctx).Info("Clusters are not identified yet", "reason", err.Error())
		select {
		case <-time.After(pause + rand.N(pause/5)):
		case <-ctx.Done():
			return nil
		}
	}
}

var errOneCluster = errors.New("upstream and downstream are the same cluster")

func (s *Syncer) identifyOnce(ctx context.Context) error {
	up, err := synctarget.ClusterUID(ctx, s.up)
	if err != nil {
		return wrap("upstream", err)
	}
	down, err := synctarget.ClusterUID(ctx, s.down)
	if err != nil {
		return wrap("downstream", err)
	}
	if up == down {
		return fmt.Errorf("%w: both have the namespace kube-system with UID %s", errOneCluster, up)
	}
	identity := s.opts.Upstream
	if identity == "" {
		identity = string(up)
	}
	s.upstreamUID = up
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner, s.downstreamUID = synctarget.Owner(identity, s.opts.Target), down
	return nil
}

// dryRun returns the value of DryRun in the options of each write.
func (s *Syncer) dryRun() []string {
	if s.dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

const (
	requestTimeout = synctarget.RequestTimeout
	// reconcileTimeout bounds one reconcile: a few requests.
	reconcileTimeout = time.Minute
)

// work reconciles the object, or the namespace, whose queue key is queued.
func (s *Syncer) work(ctx context.Context, queued string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, reconcileTimeout)
	defer cancel()
	name, of := parseQueueKey(queued)
	if name == namespaceQueue {
		return s.namespaces().reconcile(ctx, of)
	}
	s.mu.Lock()
	c := s.controllers[name]
	s.mu.Unlock()
	if c == nil {
		return 0, nil // the type is no longer synced
	}
	return c.reconcile(ctx, of)
}

// resume queues all objects of the types whose caches are fresh, and the reconciles that were put off.
func (s *Syncer) resume() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.controllers))
	s.mu.Unlock()
	for _, c := range all {
		c.resume()
	}
	if n := s.namespaces(); n != nil {
		n.resume()
	}
}

// downUID returns the UID of the downstream cluster; "" while it is unknown.
func (s *Syncer) downUID() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.downstreamUID
}

// synced returns the controllers of the types that are synced, not of those that are only reported.
func (s *Syncer) synced() []*controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*controller
	for _, c := range s.controllers {
		if c.kind.Refused == "" {
			all = append(all, c)
		}
	}
	return all
}
