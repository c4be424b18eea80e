// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// MasterOptions configure a Master. The zero value works for a program without replicas.
type MasterOptions struct {
	// Shards selects the KubeCarriers, by name, whose status this replica writes; nil: all. All replicas run the loops.
	Shards Shards
	// Observer may be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Master watches the KubeCarriers of its own plane. While one of them has spec.master: true, the Master ensures that
// the Peer local exists, and runs the loops: the func that NewMaster got as run.
type Master struct {
	plane    region.API
	run      func(context.Context) error
	opts     MasterOptions
	carriers *loop.Objects
	local    *loop.Objects
	queue    *loop.Queue
	started  atomic.Bool
	wanted   chan bool // whether the loops should run, only the newest value

	mu      sync.Mutex
	running bool
	since   time.Time
	failed  error // why the loops last ended by themselves
	written map[string]carrierWriting
}

// NewMaster makes a Master of the plane's installation. The Master calls run in its own goroutine when the installation
// becomes a master, and cancels run's context when the installation is no longer a master. If run returns earlier, with
// or without an error, it is called again after a backoff of 1 second, doubling up to 1 minute. NewMaster does no I/O
// and starts nothing; see Start.
func NewMaster(plane region.API, run func(context.Context) error, opts MasterOptions) (*Master, error) {
	switch {
	case argument.Missing(plane):
		return nil, errors.New("central: plane is nil; make one with region.APIFor")
	case run == nil:
		return nil, errors.New("central: run is nil; give the loops that a master runs")
	}
	m := &Master{
		plane: plane, run: run, opts: opts, queue: loop.NewQueue(loop.QueueOptions{Workers: 1}),
		wanted: make(chan bool, 1), written: map[string]carrierWriting{},
	}
	m.carriers = loop.NewObjects(plane.Dynamic(), carrierResource, loop.ObjectsOptions{
		Strip: loop.KeepManager(FieldManager), Changed: func(key types.NamespacedName) { m.queue.Add(key.Name) },
	})
	m.local = loop.NewObjects(plane.Dynamic(), peerResource, loop.ObjectsOptions{
		Fields: "metadata.name=" + masterv1alpha1.LocalPeer, Strip: loop.KeepManager(),
		Changed: func(types.NamespacedName) { m.queue.Add(localKey) },
	})
	return m, nil
}

// localKey is the queue key of the Peer local. It is not a valid object name.
const localKey = "/local"

// Start blocks until ctx ends, waits for all its goroutines, including run, then returns nil. While the plane is
// unreachable nothing changes: the loops keep running or stay stopped. Call it once.
func (m *Master) Start(ctx context.Context) error {
	if m.plane == nil {
		return errors.New("central: the Master was not made by NewMaster")
	}
	ctx = logging.Into(ctx, m.opts.Logger, "master")
	if m.started.Swap(true) {
		return errors.New("central: Master.Start was called twice")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = m.carriers.Start(ctx) })
	wg.Go(func() { _ = m.local.Start(ctx) })
	wg.Go(func() { m.supervise(ctx) })
	for _, objects := range []*loop.Objects{m.carriers, m.local} {
		select {
		case <-objects.Synced():
		case <-ctx.Done():
			return nil
		}
	}
	m.queue.Add(localKey)
	wg.Go(func() { loop.Resharded(ctx, m.opts.Shards, m.addCarriers) })
	return m.queue.Start(ctx, m.work)
}

func (m *Master) addCarriers() {
	for _, carrier := range m.carriers.List() {
		m.queue.Add(carrier.GetName())
	}
}

// isMaster reports whether some KubeCarrier of the plane requires the loops.
func (m *Master) isMaster() bool {
	for _, carrier := range m.carriers.List() {
		if isMaster(carrier) && carrier.GetDeletionTimestamp() == nil {
			return true
		}
	}
	return false
}

// work reconciles one KubeCarrier, or the Peer local.
func (m *Master) work(ctx context.Context, key string) (time.Duration, error) {
	master := m.isMaster()
	select {
	case <-m.wanted:
	default:
	}
	m.wanted <- master
	if key == localKey {
		if !master {
			return 0, nil
		}
		return 0, m.ensureLocal(ctx)
	}
	if master {
		m.queue.Add(localKey)
	}
	return 0, m.report(ctx, key)
}

// ensureLocal creates the Peer of the plane's own installation, unless it exists.
func (m *Master) ensureLocal(ctx context.Context) error {
	if _, ok := m.local.Get(types.NamespacedName{Name: masterv1alpha1.LocalPeer}); ok {
		return nil
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetAPIVersion(masterv1alpha1.GroupVersion.String())
	obj.SetKind("Peer")
	obj.SetName(masterv1alpha1.LocalPeer)
	_, err := m.plane.Dynamic().Resource(peerResource).Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Peer %s: %w", masterv1alpha1.LocalPeer, err)
	}
	return nil
}

const (
	runBackoff    = time.Second
	runMaxBackoff = time.Minute
)

// supervise runs the loops while the last value received from m.wanted is true. It waits for the loops to end
// before it starts them again, and before it returns.
func (m *Master) supervise(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ended := make(chan struct{})
	stop := func() {}
	running := false
	for {
		select {
		case wanted := <-m.wanted:
			if wanted == running {
				continue
			}
			stop()
			if running {
				<-ended
			}
			if running = wanted; running {
				var loops context.Context
				loops, stop = context.WithCancel(ctx)
				wg.Go(func() {
					m.runLoops(loops)
					ended <- struct{}{}
				})
			}
		case <-ctx.Done():
			stop()
			if running {
				<-ended
			}
			return
		}
	}
}

// runLoops calls run repeatedly until ctx ends.
func (m *Master) runLoops(ctx context.Context) {
	log := logging.From(ctx)
	var failed error
	fresh := backoff.Doubling(runBackoff, runMaxBackoff)
	for delays := fresh; ctx.Err() == nil; {
		log.Info("Loops of the master start")
		m.note(true, failed)
		m.opts.Observer.master(ctx, MasterEvent{Running: true})
		began := time.Now()
		err := m.run(ctx)
		if ctx.Err() != nil {
			log.Info("Loops of the master have ended")
			m.note(false, nil)
			m.opts.Observer.master(ctx, MasterEvent{})
			return
		}
		if err == nil {
			err = errors.New("run returned too early")
		}
		if time.Since(began) > runMaxBackoff {
			delays = fresh
		}
		wait := delays.Step()
		log.Error(err, "Loops of the master ended and start again", "after", wait.String())
		failed = err
		m.note(false, failed)
		m.opts.Observer.master(ctx, MasterEvent{Err: err})
		select {
		case <-time.After(jitter(wait)):
		case <-ctx.Done():
		}
	}
}

// note records the state of the loops and enqueues the KubeCarriers to report it.
func (m *Master) note(running bool, failed error) {
	m.mu.Lock()
	m.running, m.failed, m.since = running, failed, time.Now()
	m.mu.Unlock()
	m.addCarriers()
}

// loops returns the state of the loops. After a failure, loops that run again count as failed until they have run for
// runMaxBackoff; settles is the remaining time.
func (m *Master) loops() (running bool, settles time.Duration, failed error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running && m.failed != nil {
		if settles = runMaxBackoff - time.Since(m.since); settles <= 0 {
			m.failed, settles = nil, 0
		}
	}
	return m.running, settles, m.failed
}
