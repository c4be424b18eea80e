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

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Targets runs a Syncer for each SyncTarget of an upstream, in this process. SyncTargets without a kubeconfig are left to
// syncers that run elsewhere.
type Targets struct {
	up      region.API
	opts    TargetsOptions
	queue   *loop.Queue
	targets *loop.Objects
	started atomic.Bool

	mu      sync.Mutex
	running map[string]*engaged
}

// TargetsOptions adjust Targets. The zero value works.
type TargetsOptions struct {
	// Configure changes the Options with which the Syncer of a SyncTarget is made; Target and Heartbeat are set. It must be
	// safe for concurrent use. May be nil.
	Configure func(target *v1alpha1.SyncTarget, opts *Options)
	// Trust says what kubeconfigs may have beyond what is safe.
	Trust region.Trust
	// Heartbeat is how often the status of each SyncTarget is written; zero: 20 s.
	Heartbeat time.Duration
	// Recheck is how often Secrets are read again; zero: 30 s.
	Recheck time.Duration
}

// targetFinalizer keeps a SyncTarget until its upstream objects are let go.
const targetFinalizer = "syncer.atoll.dev/synctarget"

// kubeconfigKey is where a Secret holds the kubeconfig.
const kubeconfigKey = "kubeconfig"

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// engaged is a Syncer that runs.
type engaged struct {
	uid    types.UID
	source string // the digest of the kubeconfig
	conn   *region.Conn
	syncer *Syncer
	cancel context.CancelFunc
	done   chan struct{}
}

// NewTargets checks opts. It does no I/O and starts nothing; see Start.
func NewTargets(up region.API, opts TargetsOptions) (*Targets, error) {
	if up == nil {
		return nil, errors.New("syncer: NewTargets needs an upstream API")
	}
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = 20 * time.Second
	}
	if opts.Recheck <= 0 {
		opts.Recheck = 30 * time.Second
	}
	t := &Targets{up: up, opts: opts, queue: loop.NewQueue(loop.QueueOptions{}), running: map[string]*engaged{}}
	t.targets = loop.NewObjects(up.Dynamic(), syncTargets, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Changed: func(key types.NamespacedName) { t.queue.Add(key.Name) }, Flows: t.all,
	})
	return t, nil
}

// all looks at every SyncTarget, and at those that run without one.
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

// Start runs until ctx ends, waits for all Syncers, then returns nil. When it ends, everything stays as it is. Call it
// once.
func (t *Targets) Start(ctx context.Context) error {
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

// Syncer returns the Syncer of a SyncTarget; nil if there is none here at present.
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

// stop ends the Syncer of a SyncTarget, if there is one.
func (t *Targets) stop(name string) {
	t.mu.Lock()
	e := t.running[name]
	delete(t.running, name)
	t.mu.Unlock()
	if e != nil {
		e.end()
	}
}

// pass brings what runs in line with one SyncTarget. ctx is that of Start: Syncers outlive the pass.
func (t *Targets) pass(ctx context.Context, name string) (time.Duration, error) {
	if t.targets.Err() != nil {
		return 0, nil
	}
	obj, ok := t.targets.Get(types.NamespacedName{Name: name})
	if !ok {
		t.stop(name)
		return 0, nil
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return 0, wrap("SyncTarget "+name, err)
	}
	if e := t.get(name); e != nil && e.uid != target.UID {
		t.stop(name)
	}
	if target.DeletionTimestamp != nil {
		return 0, t.release(ctx, target)
	}
	kubeconfig, err := t.kubeconfig(ctx, target)
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, errNoKubeconfig):
		return t.opts.Recheck, t.refuse(ctx, target, err)
	case err != nil:
		return 0, err
	case kubeconfig == nil:
		t.stop(name)
		return 0, nil
	}
	credentials, err := region.ParseKubeconfig(kubeconfig, t.opts.Trust)
	if err != nil {
		return t.opts.Recheck, t.refuse(ctx, target, err)
	}
	if err := t.hold(ctx, target); err != nil {
		return 0, err
	}
	return t.opts.Recheck, t.engage(ctx, target, credentials, digest(kubeconfig))
}

var errNoKubeconfig = errors.New("the Secret has no key " + kubeconfigKey)

// kubeconfig returns that of a SyncTarget; nil if it has none.
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

// refuse says why there is no Syncer. One that runs goes on with what it has.
func (t *Targets) refuse(ctx context.Context, target *v1alpha1.SyncTarget, why error) error {
	logr.FromContextOrDiscard(ctx).Info("A kubeconfig is not accepted", "target", target.Name, "reason", why.Error())
	if t.get(target.Name) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ready := slices.IndexFunc(target.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(v1alpha1.SyncTargetConditionReady) && c.Reason == string(v1alpha1.SyncTargetReasonKubeconfigInvalid) && c.Message == why.Error()
	})
	if ready >= 0 && target.Status.ObservedGeneration == target.Generation {
		return nil
	}
	return writeTarget(ctx, t.up.Dynamic().Resource(syncTargets), target, func(_ *v1alpha1.SyncTargetStatus, set setCondition) {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonKubeconfigInvalid, why.Error())
		set(v1alpha1.SyncTargetConditionReachable, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "")
	})
}

// hold adds the finalizer.
func (t *Targets) hold(ctx context.Context, target *v1alpha1.SyncTarget) error {
	if slices.Contains(target.Finalizers, targetFinalizer) {
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

// release ends the Syncer of a SyncTarget that is being deleted, lets its objects go, and then the SyncTarget.
func (t *Targets) release(ctx context.Context, target *v1alpha1.SyncTarget) error {
	t.stop(target.Name)
	if !slices.Contains(target.Finalizers, targetFinalizer) {
		return nil
	}
	opts := t.options(target)
	s, err := New(t.up, t.up, opts) // Detach needs the upstream only
	if err != nil {
		return err
	}
	if err := s.Detach(ctx); err != nil {
		return err
	}
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

// engage starts a Syncer, or gives new credentials to the one that runs.
func (t *Targets) engage(ctx context.Context, target *v1alpha1.SyncTarget, credentials region.Credentials, source string) error {
	if e := t.get(target.Name); e != nil {
		select {
		case <-e.done:
			t.stop(target.Name) // it could not start, or was stopped with ctx
		default:
			if e.source == source {
				return nil
			}
			if err := e.conn.Rotate(ctx, credentials); err != nil {
				return err
			}
			e.source = source // only this pass reads and writes it
			return nil
		}
	}
	conn, err := region.NewConn(region.Peer{Name: region.PeerName(target.Name), Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return t.refuse(ctx, target, err)
	}
	s, err := New(t.up, conn, t.options(target))
	if err != nil {
		conn.Close()
		return t.refuse(ctx, target, err)
	}
	runCtx, cancel := context.WithCancel(ctx)
	e := &engaged{uid: target.UID, source: source, conn: conn, syncer: s, cancel: cancel, done: make(chan struct{})}
	t.mu.Lock()
	t.running[target.Name] = e
	t.mu.Unlock()
	go func() {
		defer close(e.done)
		if err := s.Start(runCtx); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "The Syncer does not run", "target", target.Name)
		}
	}()
	return nil
}
