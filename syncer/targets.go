// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Targets runs a Syncer for each SyncTarget of an upstream: in this process, or in the cluster where it installs it,
// see Mode. SyncTargets without a kubeconfig are left to syncers that run elsewhere.
type Targets struct {
	up      region.API
	opts    TargetsOptions
	queue   *loop.Queue
	targets *loop.Objects
	started atomic.Bool

	mu          sync.Mutex
	running     map[string]*engaged
	pulses      map[string]pulse
	types       map[string]said
	upstreamUID types.UID
}

// Mode is where the Syncer of a SyncTarget runs.
type Mode string

const (
	// Push: in the process of Targets, which reaches the cluster from outside.
	Push Mode = "Push"
	// Pull: inside the cluster. Targets installs it there by TargetsOptions.Install, repairs the installation, and
	// reports it in the condition Installed. It removes the installation when the SyncTarget is deleted. The SyncTarget
	// stays until its cluster was reachable and nothing of the installation is left there, or until a person sets
	// v1alpha1.AbandonAnnotation.
	Pull Mode = "Pull"
	// None: elsewhere, started by other means. Targets reports in the conditions if its heartbeat stands still.
	None Mode = "None"
)

// TargetsOptions configure Targets. The zero value works.
type TargetsOptions struct {
	// Mode returns where the Syncer of a SyncTarget runs; nil: Push. It must be safe for concurrent use and always
	// return the same result for a SyncTarget that is being deleted.
	Mode func(target *v1alpha1.SyncTarget) Mode
	// Install returns the installation in Pull mode; Targets sets its Target, Upstream and Heartbeat afterwards. It is
	// called again and again, so credentials may be short-lived. It may block, must be safe for concurrent use, and is
	// required if Mode ever returns Pull.
	Install func(ctx context.Context, target *v1alpha1.SyncTarget) (Install, error)
	// Configure changes the Options of the Syncer of a SyncTarget; Target and Heartbeat are set. In Pull mode its Types
	// are the types whose objects are released when the SyncTarget is deleted; nil: those that Install names. It must
	// be safe for concurrent use. May be nil.
	Configure func(target *v1alpha1.SyncTarget, opts *Options)
	// Trust allows contents of kubeconfigs that are not accepted by default.
	Trust region.Trust
	// Heartbeat is how often the status of each SyncTarget is written; zero: 20 s. A syncer elsewhere is reported as
	// silent when its heartbeat has stood still for four times as long.
	Heartbeat time.Duration
	// Recheck is how often Secrets are read and installations are checked again; zero: 30 s.
	Recheck time.Duration

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

func (o TargetsOptions) mode(target *v1alpha1.SyncTarget) Mode {
	if o.Mode == nil {
		return Push
	}
	return o.Mode(target)
}

// targetFinalizer keeps a SyncTarget until its upstream objects are released.
const targetFinalizer = "syncer.atoll.dev/synctarget"

// kubeconfigKey is the key of the kubeconfig in a Secret.
const kubeconfigKey = "kubeconfig"

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// engaged is a connected cluster, for which a Syncer or the watch of an installed Syncer runs.
type engaged struct {
	uid         types.UID
	mode        Mode
	source      string // the digest of the kubeconfig
	conn        *region.Conn
	syncer      *Syncer       // with Push
	deployments *loop.Objects // with Pull
	disturbed   atomic.Bool   // the installed Deployment has changed
	placed      time.Time     // when the installation was last applied; only pass uses it
	generation  int64         // of the SyncTarget at that time
	cancel      context.CancelFunc
	done        chan struct{}
}

// NewTargets returns Targets, or an error if up is nil. It does no I/O and starts nothing; see Start.
func NewTargets(up region.API, opts TargetsOptions) (*Targets, error) {
	if argument.Missing(up) {
		return nil, errors.New("syncer: the upstream API is nil: pass what region.APIFor returns")
	}
	if opts.Mode != nil && opts.Install == nil {
		opts.Install = func(context.Context, *v1alpha1.SyncTarget) (Install, error) {
			return Install{}, errors.New("TargetsOptions.Install is nil: set it to install syncers in Pull mode")
		}
	}
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = 20 * time.Second
	}
	if opts.Recheck <= 0 {
		opts.Recheck = 30 * time.Second
	}
	t := &Targets{up: up, opts: opts, queue: loop.NewQueue(loop.QueueOptions{}),
		running: map[string]*engaged{}, pulses: map[string]pulse{}, types: map[string]said{}}
	t.targets = loop.NewObjects(up.Dynamic(), syncTargets, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Changed: func(key types.NamespacedName) { t.queue.Add(key.Name) }, Flows: t.all,
	})
	return t, nil
}

// all queues every SyncTarget, and every cluster that is engaged without one.
func (t *Targets) all() {
	for _, key := range t.targets.Keys() {
		t.queue.Add(key.Name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.running {
		t.queue.Add(name)
	}
}

// Start runs until ctx ends, waits for all Syncers, then returns nil. When it ends, SyncTargets and objects stay as
// they are. Call it once.
func (t *Targets) Start(ctx context.Context) error {
	if t.up == nil {
		return errors.New("syncer: the Targets were not made by NewTargets")
	}
	ctx = logging.Into(ctx, t.opts.Logger, "targets")
	if t.started.Swap(true) {
		return errors.New("syncer: Start of Targets was called twice")
	}
	var all sync.WaitGroup
	all.Go(func() { _ = t.targets.Start(ctx) })
	_ = t.queue.Start(ctx, func(_ context.Context, name string) (time.Duration, error) { return t.pass(ctx, name) })
	all.Wait()
	for _, e := range t.running {
		e.end()
	}
	return nil
}

// Syncer returns the Syncer of a SyncTarget that runs in this process; nil if none does. It does not block.
func (t *Targets) Syncer(name string) *Syncer {
	if e := t.get(name); e != nil {
		return e.syncer
	}
	return nil
}

func (t *Targets) get(name string) *engaged {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[name]
}

func (e *engaged) end() {
	e.cancel()
	<-e.done
	e.conn.Close()
}

// stop ends the Syncer or the watch of a SyncTarget, if one runs.
func (t *Targets) stop(name string) {
	t.mu.Lock()
	e := t.running[name]
	delete(t.running, name)
	t.mu.Unlock()
	if e != nil {
		e.end()
	}
}

// Connected returns the APIs of the clusters that are connected at present, by the name of the SyncTarget. It does
// not block.
func (t *Targets) Connected() map[string]region.API {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]region.API{}
	for name, e := range t.running {
		all[name] = e.conn
	}
	return all
}

// pass brings the Syncer or the installation of one SyncTarget up to date. ctx is that of Start: Syncers outlive the
// pass.
func (t *Targets) pass(ctx context.Context, name string) (time.Duration, error) {
	if t.targets.Err() != nil {
		return 0, nil
	}
	obj, ok := t.targets.Get(types.NamespacedName{Name: name})
	if !ok {
		t.stop(name)
		t.forget(name)
		return 0, nil
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return 0, wrap("SyncTarget "+name, err)
	}
	mode := t.opts.mode(target)
	if e := t.get(name); e != nil && (e.uid != target.UID || e.mode != mode) {
		t.stop(name)
	}
	if target.DeletionTimestamp != nil {
		return t.release(ctx, target)
	}
	all, again, err := t.serve(ctx, target, mode)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defined, ok := t.types[name]
	t.mu.Unlock()
	if ok {
		all = append(all, defined)
	}
	return again, t.say(ctx, target, all...)
}

// forget drops the state of a SyncTarget that is gone.
func (t *Targets) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pulses, name)
	delete(t.types, name)
}

// serve starts, updates or ends the Syncer or the installation of a SyncTarget. It returns the conditions to write,
// and the requeue delay.
func (t *Targets) serve(ctx context.Context, target *v1alpha1.SyncTarget, mode Mode) ([]said, time.Duration, error) {
	var kubeconfig []byte
	var err error
	if mode != None {
		kubeconfig, err = t.kubeconfig(ctx, target)
	}
	switch {
	case err == nil && kubeconfig == nil:
		t.stop(target.Name)
		all, again := t.elsewhere(target, mode)
		return all, again, nil
	case apierrors.IsNotFound(err) || errors.Is(err, errNoKubeconfig):
		return t.refuse(ctx, target, err), t.opts.Recheck, nil
	case err != nil:
		return nil, 0, err
	}
	if _, err := region.ParseKubeconfig(kubeconfig, t.opts.Trust); err != nil {
		return t.refuse(ctx, target, err), t.opts.Recheck, nil
	}
	if err := t.hold(ctx, target); err != nil {
		return nil, 0, err
	}
	e, err := t.engage(ctx, target, mode, kubeconfig)
	switch {
	case errors.Is(err, errUnusable):
		return t.refuse(ctx, target, err), t.opts.Recheck, nil
	case err != nil:
		return nil, 0, err
	case mode == Push:
		return nil, t.opts.Recheck, nil
	}
	state, err := t.install(ctx, target, e)
	if err != nil {
		return nil, 0, err
	}
	all, again := t.elsewhere(target, mode)
	return append(all, state), loop.Sooner(again, t.opts.Recheck), nil
}

var errNoKubeconfig = errors.New("the Secret has no key " + kubeconfigKey)

// kubeconfig returns the kubeconfig of a SyncTarget; nil if it has none.
func (t *Targets) kubeconfig(ctx context.Context, target *v1alpha1.SyncTarget) ([]byte, error) {
	if target.Spec.Kubeconfig != "" {
		return []byte(target.Spec.Kubeconfig), nil
	}
	ref := target.Spec.KubeconfigSecret
	if ref.Name == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := t.up.Dynamic().Resource(secrets).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", kubeconfigKey)
	var data []byte
	if err := json.Unmarshal([]byte(`"`+encoded+`"`), &data); err != nil || len(data) == 0 {
		return nil, fmt.Errorf("kubeconfig of Secret %s/%s: %w", ref.Namespace, ref.Name, errNoKubeconfig)
	}
	return data, nil
}

// refuse returns the conditions for a kubeconfig that is not accepted. A Syncer that runs keeps its connection: then
// there are no such conditions.
func (t *Targets) refuse(ctx context.Context, target *v1alpha1.SyncTarget, why error) []said {
	logging.From(ctx).Info("A kubeconfig is not accepted", "target", target.Name, "reason", why.Error())
	if t.get(target.Name) != nil {
		return nil
	}
	return []said{
		{v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonKubeconfigInvalid, why.Error()},
		{v1alpha1.SyncTargetConditionReachable, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, ""},
	}
}

// hold adds our finalizer to a SyncTarget.
func (t *Targets) hold(ctx context.Context, target *v1alpha1.SyncTarget) error {
	if isHeld(target) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	wish := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SyncTarget",
		"metadata": map[string]any{"name": target.Name, "uid": string(target.UID), "finalizers": []any{targetFinalizer}},
	}}
	_, err := t.up.Dynamic().Resource(syncTargets).Apply(ctx, target.Name, wish, metav1.ApplyOptions{FieldManager: targetManager, Force: true})
	return wrap("add the finalizer to SyncTarget "+target.Name, err)
}

// release ends the Syncer of a SyncTarget that is being deleted, and releases its objects and then the SyncTarget.
func (t *Targets) release(ctx context.Context, target *v1alpha1.SyncTarget) (time.Duration, error) {
	if !isHeld(target) {
		t.stop(target.Name)
		return 0, nil
	}
	if t.opts.mode(target) != Push {
		if done, again, err := t.leave(ctx, target); err != nil || !done {
			return again, err
		}
	}
	t.stop(target.Name)
	opts := t.options(target)
	if opts.Types == nil && t.opts.mode(target) == Pull {
		opts.Types = t.installedTypes(ctx, target)
	}
	s, err := newSyncer(t.up, t.up, opts) // Detach needs the upstream only, and no permit
	if err != nil {
		return 0, err
	}
	if err := s.Detach(ctx); err != nil {
		return 0, err
	}
	return 0, t.drop(ctx, target)
}

// drop removes our finalizer from a SyncTarget.
func (t *Targets) drop(ctx context.Context, target *v1alpha1.SyncTarget) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": target.UID, "resourceVersion": target.ResourceVersion,
		"finalizers": slices.DeleteFunc(slices.Clone(target.Finalizers), func(f string) bool { return f == targetFinalizer }),
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = t.up.Dynamic().Resource(syncTargets).Patch(ctx, target.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: targetManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return wrap("remove the finalizer of SyncTarget "+target.Name, err)
}

func (t *Targets) options(target *v1alpha1.SyncTarget) Options {
	opts := Options{Target: target.Name, Heartbeat: t.opts.Heartbeat}
	if t.opts.Configure != nil {
		t.opts.Configure(target, &opts)
	}
	return opts
}

var errUnusable = errors.New("the SyncTarget cannot be served")

// engage connects to the cluster, and starts its Syncer or the watch of its installation. If one runs, it gets the
// new credentials.
func (t *Targets) engage(ctx context.Context, target *v1alpha1.SyncTarget, mode Mode, kubeconfig []byte) (*engaged, error) {
	credentials, err := region.ParseKubeconfig(kubeconfig, t.opts.Trust)
	if err != nil {
		return nil, err
	}
	source := digest(kubeconfig)
	if e := t.get(target.Name); e != nil {
		select {
		case <-e.done:
			t.stop(target.Name) // it has failed, or ctx has ended
		default:
			if e.source == source {
				return e, nil
			}
			if err := e.conn.Rotate(ctx, credentials); err != nil {
				return nil, err
			}
			e.source = source // only pass uses it, once at a time for each SyncTarget
			return e, nil
		}
	}
	conn, err := region.NewConn(region.Peer{Name: region.PeerName(target.Name), Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	e := &engaged{uid: target.UID, mode: mode, source: source, conn: conn, done: make(chan struct{})}
	run, err := t.work(ctx, target, e)
	if err != nil {
		conn.Close()
		return nil, err
	}
	runCtx, cancel := context.WithCancel(ctx)
	e.cancel = cancel
	t.mu.Lock()
	t.running[target.Name] = e
	t.mu.Unlock()
	go func() {
		defer close(e.done)
		if err := run(runCtx); err != nil {
			logging.From(ctx).Error(err, "The Syncer does not run", "target", target.Name)
		}
	}()
	return e, nil
}

// work prepares the Syncer of a SyncTarget, or the watch of its installation, and returns the func that runs it.
func (t *Targets) work(ctx context.Context, target *v1alpha1.SyncTarget, e *engaged) (func(context.Context) error, error) {
	if e.mode == Pull {
		in, err := t.ownInstall(ctx, target)
		if err != nil {
			return nil, err
		}
		e.deployments = loop.NewObjects(e.conn.Dynamic(), deploymentResource, loop.ObjectsOptions{
			Namespace: in.name(), Strip: loop.KeepManager(), Changed: func(types.NamespacedName) {
				e.disturbed.Store(true)
				t.queue.Add(target.Name)
			},
		})
		return e.deployments.Start, nil
	}
	s, err := New(t.up, e.conn, t.options(target))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnusable, err)
	}
	e.syncer = s
	return s.Start, nil
}
