// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// manager owns what is written downstream.
const manager = "atoll-syncer"

// Syncer copies objects that are labelled for one target from an upstream API server to a downstream one, and their
// status back. It takes two APIs and does not care where it runs.
type Syncer struct {
	up, down region.API
	given    Options // as New got them
	opts     Options
	queue    *loop.Queue
	// add and addBehind add to the queue.
	add, addBehind func(key string)
	dry            bool // requests are dry runs
	lease          *lease
	started        atomic.Bool

	// finalizer and the managers are what we are known by upstream, where there may be syncers of other targets.
	finalizer, upManager, statusManager, fieldsManager, bornManager, conditionManager string

	instance string    // names this process in logs and messages
	begun    time.Time // when Start was called
	others   others

	upstreamUID types.UID // known before any work begins

	mu            sync.Mutex
	owner         string
	downstreamUID types.UID
	lanes         map[string]*lane
	unsynced      map[schema.GroupVersionResource]Reason
	asking        map[schema.GroupVersionResource][]Problem // objects of types that are not synced
	compared      bool                                      // schemas were compared once
	capacity      *corev1.ResourceList                      // nil: not read yet
	namespaced    *namespaceSync                            // nil: namespaces are made and that is all
}

// New checks opts. It does no I/O and starts nothing; see Start.
func New(up, down region.API, opts Options) (*Syncer, error) {
	switch {
	case argument.Missing(up):
		return nil, errors.New("syncer: the upstream API is nil: pass what region.APIFor returns")
	case argument.Missing(down):
		return nil, errors.New("syncer: the downstream API is nil: pass what region.APIFor returns")
	}
	if err := opts.checkPermit(); err != nil {
		return nil, fmt.Errorf("syncer: %w", err)
	}
	return newSyncer(up, down, opts)
}

var errNotMade = errors.New("syncer: the Syncer was not made by New")

// newSyncer is New for who does not mind that types are refused which Options.Types names.
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
	queue := loop.NewQueue(loop.QueueOptions{Workers: opts.Workers})
	return &Syncer{
		up: up, down: down, given: given, opts: opts,
		lease: newLease(opts.Lease),
		queue: queue, add: queue.Add, addBehind: queue.AddBehind,
		finalizer: v1alpha1.FinalizerPrefix + opts.Target,
		upManager: manager + "-" + opts.Target, statusManager: manager + "-status-" + opts.Target, fieldsManager: manager + "-fields-" + opts.Target,
		bornManager: manager + "-upsync-" + opts.Target, conditionManager: manager + "-condition-" + opts.Target,
		instance: fmt.Sprintf("%08x", rand.Uint32()),
		lanes:    map[string]*lane{}, unsynced: map[schema.GroupVersionResource]Reason{},
	}, nil
}

// Start syncs until ctx ends, waits for its workers, then returns nil. It is not an error if a server is away or a type is
// refused: that is in Status, and tried again. It fails at once if both APIs reach the same cluster. When it ends,
// everything stays as it is on both sides. Call it once.
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
		all.Go(func() { s.beat(ctx) })
		all.Go(func() { s.comeBack(ctx) })
		if s.opts.Capacity > 0 {
			all.Go(func() { s.measure(ctx) })
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
		all.Go(func() { s.findAsking(ctx) })
	}
	s.followTypes(ctx)
	return nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// identify finds out which clusters the two APIs reach.
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
	up, err := uidOf(ctx, s.up)
	if err != nil {
		return wrap("upstream", err)
	}
	down, err := uidOf(ctx, s.down)
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
	s.owner, s.downstreamUID = digest([]byte(identity+"/"+s.opts.Target)), down
	return nil
}

// dryRun is what requests that write are made with.
func (s *Syncer) dryRun() []string {
	if s.dry {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// patchBy are the options of an apply with force.
func (s *Syncer) patchBy(manager string) metav1.PatchOptions {
	return metav1.PatchOptions{FieldManager: manager, Force: new(true), DryRun: s.dryRun()}
}

func uidOf(ctx context.Context, api region.API) (types.UID, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ns, err := api.Metadata().Resource(namespaces).Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", err)
	}
	return ns.UID, nil
}

const (
	requestTimeout = 30 * time.Second
	// passTimeout bounds the work on one object: a few requests.
	passTimeout = time.Minute
)

// work works on one object of a type.
func (s *Syncer) work(ctx context.Context, queued string) (time.Duration, error) {
	name, text, _ := strings.Cut(queued, "|")
	if name == namespaceQueue {
		ctx, cancel := context.WithTimeout(ctx, passTimeout)
		defer cancel()
		return s.namespaces().pass(ctx, loop.ParseKey(text))
	}
	s.mu.Lock()
	l := s.lanes[name]
	s.mu.Unlock()
	if l == nil {
		return 0, nil // the type is not synced any more
	}
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if place, stray := strings.CutPrefix(text, strayMark); stray {
		return l.stray(ctx, loop.ParseKey(place))
	}
	key := loop.ParseKey(text)
	if shown(key) != key {
		return l.raise(ctx, shown(key))
	}
	return l.pass(ctx, key)
}
