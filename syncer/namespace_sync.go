// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/loop"
)

// namespaceQueue begins the queue keys of namespaces. No type has that name.
const namespaceQueue = "@namespaces"

// namespaceSync syncs namespaces as NamespaceOptions ask.
type namespaceSync struct {
	*syncedType // the requests and records of namespaces; its caches are nil
	finalizers  finalizers
	ending      namespaceEnd
	opts        NamespaceOptions
	// upstream has all upstream namespaces, downstream the downstream namespaces with our owner label.
	upstream, downstream *loop.Objects
	missed               missed

	mu   sync.Mutex
	used map[string]bool // upstream namespaces in which an object is synced
	ends map[string]int  // how often the end of a namespace was retried
}

func newNamespaceSync(s *Syncer) *namespaceSync {
	r := newSyncedType(s, namespaceQueue, kind{GVR: namespaces, Kind: "Namespace"})
	n := &namespaceSync{syncedType: r, finalizers: finalizers{r}, opts: s.opts.NamespaceSync, used: map[string]bool{}, ends: map[string]int{}}
	n.ending = namespaceEnd{r, n}
	n.upstream = loop.NewObjects(s.up.Dynamic(), namespaces, loop.ObjectsOptions{
		Packed: true, Flows: n.resume, Changed: func(key types.NamespacedName) { s.add(n.queueKey(key)) }, Strip: keepContent(),
		Note: func(obj *unstructured.Unstructured) string { return strings.Join(obj.GetFinalizers(), ",") },
	})
	n.downstream = loop.NewObjects(s.down.Dynamic(), namespaces, loop.ObjectsOptions{
		Labels: ownerLabel + "=" + s.owner, Packed: true, Flows: n.resume, Strip: loop.KeepManager(manager),
		Changed: func(place types.NamespacedName) {
			if name, ok := s.opts.Namespaces.Up(place.Name); ok {
				s.add(n.queueKey(types.NamespacedName{Name: name}))
			}
		},
	})
	return n
}

func (n *namespaceSync) queueKey(key types.NamespacedName) string {
	return originRef(key).queueKey(n.name)
}

// keepNamespaces sets up Options.NamespaceSync. The owner must be known.
func (s *Syncer) keepNamespaces() {
	if !s.opts.NamespaceSync.enabled() {
		return
	}
	n := newNamespaceSync(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespaced = n
}

func (s *Syncer) namespaces() *namespaceSync {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.namespaced
}

// start runs the caches until ctx ends.
func (n *namespaceSync) start(ctx context.Context) {
	var caches sync.WaitGroup
	caches.Go(func() { _ = n.upstream.Start(ctx) })
	caches.Go(func() { _ = n.downstream.Start(ctx) })
	caches.Wait()
}

func (n *namespaceSync) fresh() error {
	return errors.Join(n.syncer.lease.err(), wrap("upstream", n.upstream.Err()), wrap("downstream", n.downstream.Err()))
}

// resume runs when a cache has become fresh or stale, and when the lease is back. If both caches are fresh and the
// lease is held, it queues all namespaces and the missed reconciles.
func (n *namespaceSync) resume() {
	if n.fresh() != nil {
		return
	}
	for _, key := range n.upstream.Keys() {
		n.syncer.addBehind(n.queueKey(key))
	}
	for _, place := range n.downstream.Keys() {
		if name, ok := n.syncer.opts.Namespaces.Up(place.Name); ok {
			n.syncer.addBehind(n.queueKey(types.NamespacedName{Name: name}))
		}
	}
	n.missed.requeue(n.syncer.addBehind)
}

// synced records that the syncer syncs an object in the upstream namespace with the given name.
func (n *namespaceSync) synced(name string) {
	if n == nil || name == "" {
		return
	}
	n.mu.Lock()
	known := n.used[name]
	n.used[name] = true
	n.mu.Unlock()
	if !known {
		n.syncer.add(n.queueKey(types.NamespacedName{Name: name}))
	}
}

func (n *namespaceSync) status() TypeStatus {
	return TypeStatus{
		Resource: namespaces, Err: n.fresh(), Upstream: n.upstream.Len(), Downstream: n.downstream.Len(), Held: n.valve.held(), Problems: n.records.problems(),
	}
}

// reconcile brings one namespace up to date on both sides.
func (n *namespaceSync) reconcile(ctx context.Context, of ref) (again time.Duration, err error) {
	key := of.NamespacedName
	if err := n.missed.check(n.queueKey(key), n.fresh); err != nil {
		return n.syncer.putOff(err)
	}
	place, err := n.syncer.opts.Namespaces.Down(key.Name)
	if err != nil || reserved(key.Name, place) != "" {
		return 0, nil // no object is synced there
	}
	u, _ := n.upstream.Get(key)
	d, _ := n.downstream.Get(types.NamespacedName{Name: place})
	if d != nil && !n.created(d) {
		d = nil // another client wrote our label: the namespace is not ours
	}
	switch {
	case u == nil && d == nil:
		n.report(ctx, originRef(key), "", "")
		n.valve.withdraw(originRef(key))
		n.forgetTries(key.Name)
	case u == nil:
		again, err = n.ending.removeOrphan(ctx, key, d)
	case u.GetDeletionTimestamp() != nil:
		again, err = n.ending.end(ctx, key, place, u, d)
	default:
		n.report(ctx, originRef(key), "", "")
		n.valve.withdraw(originRef(key))
		n.forgetTries(key.Name)
		err = n.keep(ctx, key, u, d)
	}
	switch {
	case isStale(err):
		return 0, loop.ErrBehind
	case apierrors.IsForbidden(err):
		n.report(ctx, originRef(key), ReasonForbidden, err.Error())
	}
	return again, wrap("sync namespace "+key.Name, err)
}

// created reports whether this syncer wrote the owner label of a namespace, by whichever operation: earlier releases
// wrote the label by a create request, not by an apply.
func (n *namespaceSync) created(d metav1.Object) bool {
	return slices.ContainsFunc(d.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.FieldsV1 != nil && strings.Contains(string(e.FieldsV1.GetRawBytes()), `"f:`+ownerLabel+`"`)
	})
}

// keep adds our finalizer to an upstream namespace in which an object is synced, if the options Finish or Delete need
// the finalizer. It writes the labels and annotations of the namespace down.
func (n *namespaceSync) keep(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured) error {
	n.mu.Lock()
	wanted := n.used[key.Name] && (n.opts.Finish || n.opts.Delete)
	n.mu.Unlock()
	if wanted && !n.syncer.holds(u) {
		if _, err := n.finalizers.write(ctx, u, append(u.GetFinalizers(), n.syncer.finalizer)); err != nil {
			return wrap("add the finalizer", err)
		}
		n.wrote(ctx, WriteFinalizer, key)
	}
	if d == nil || d.GetDeletionTimestamp() != nil || n.opts.Metadata == nil && !loop.Applied(d, manager) {
		return nil
	}
	return n.mark(ctx, key, u, d)
}

// desired returns the desired downstream namespace of u, which may be nil. d is the present downstream namespace,
// or nil if it is absent.
func (n *namespaceSync) desired(place string, u, d *unstructured.Unstructured) *unstructured.Unstructured {
	want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	want.SetName(place)
	labels, annotations := map[string]string{ownerLabel: n.syncer.owner}, map[string]string(nil)
	if u != nil {
		for key, value := range n.opts.passing(u.GetLabels(), n.syncer.opts.Label) {
			labels[key] = value
		}
		annotations = n.opts.passing(u.GetAnnotations(), n.syncer.opts.Label)
		present, ours := map[string]string(nil), func(string) bool { return false }
		if d != nil {
			present, ours = d.GetLabels(), func(key string) bool { return loop.Applied(d, manager, "metadata", "labels", key) }
		}
		for key, level := range n.opts.podSecurity(u.GetLabels(), present, ours) {
			labels[key] = level
		}
	}
	want.SetLabels(labels)
	if len(annotations) > 0 {
		want.SetAnnotations(annotations)
	}
	return want
}

// mark applies the labels and annotations of u to d. Values that another client has set stay, and are reported.
func (n *namespaceSync) mark(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured) error {
	want := n.desired(d.GetName(), u, d)
	if !loop.Differs(d, want, manager) {
		return nil
	}
	want.SetUID(d.GetUID())
	want.SetResourceVersion(d.GetResourceVersion()) // a level that was raised meanwhile is not lowered
	after, err := n.down.apply(ctx, want, manager, false)
	if theirs := conflicts(err); len(theirs) > 0 {
		for _, field := range []string{"labels", "annotations"} {
			kept, _, _ := unstructured.NestedStringMap(want.Object, "metadata", field)
			for name := range kept {
				if slices.ContainsFunc(theirs, func(f string) bool { return strings.HasPrefix(f, ".metadata."+field+"."+name+": ") }) {
					unstructured.RemoveNestedField(want.Object, "metadata", field, name)
				}
			}
		}
		n.report(ctx, originRef(key), ReasonForeign, "others have set fields of the namespace downstream, which stay: "+strings.Join(theirs, "; "))
		after, err = n.down.apply(ctx, want, manager, false)
	}
	if err != nil {
		return wrap("write labels and annotations downstream", err)
	}
	if after.GetResourceVersion() != d.GetResourceVersion() {
		n.wrote(ctx, WriteUpdate, key)
	}
	return nil
}

// create creates a downstream namespace with its labels and annotations, so that no object is admitted there without
// them.
func (n *namespaceSync) create(ctx context.Context, place string) error {
	var u *unstructured.Unstructured
	if name, ok := n.syncer.opts.Namespaces.Up(place); ok {
		u, _ = n.upstream.Get(types.NamespacedName{Name: name})
	}
	want := n.desired(place, u, nil)
	want.SetResourceVersion(neverVersion)
	_, err := n.down.apply(ctx, want, manager, false)
	return err
}

// release removes our finalizer from an upstream namespace.
func (n *namespaceSync) release(ctx context.Context, u metav1.Object) error {
	n.mu.Lock()
	delete(n.used, u.GetName())
	n.mu.Unlock()
	return n.finalizers.drop(ctx, u)
}

// retryAfter returns the retry delay of the end of a namespace, which doubles with each call.
func (n *namespaceSync) retryAfter(name string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[name]++
	return backoff.After(n.ends[name], retryBlocked, maxRetryBlocked)
}

func (n *namespaceSync) forgetTries(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ends, name)
}
