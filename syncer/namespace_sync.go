// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// namespaceQueue is before the names of namespaces in the queue. No type has that name.
const namespaceQueue = "@namespaces"

// namespaceSync does what NamespaceOptions ask for. Its lane has no caches: it makes requests and keeps problems.
type namespaceSync struct {
	*lane
	opts     NamespaceOptions
	up, down *loop.Objects // all namespaces upstream, and those that this syncer made downstream
	missed   missed

	mu    sync.Mutex
	holds map[string]bool // namespaces in which something is synced
	tries map[string]int  // how often one could not be ended
}

func newNamespaceSync(s *Syncer) *namespaceSync {
	n := &namespaceSync{
		lane: &lane{
			syncer: s, name: namespaceQueue, kind: kind{GVR: namespaces, Kind: "Namespace"}, valve: newValve(s.opts.DeleteCap),
			problems: map[types.NamespacedName]Problem{}, memos: map[types.NamespacedName]memo{}, settled: map[types.NamespacedName]seen{},
		},
		opts: s.opts.NamespaceSync, holds: map[string]bool{}, tries: map[string]int{},
	}
	n.blockers = newBlockers(n.retryNow)
	strip := loop.KeepManager()
	n.up = loop.NewObjects(s.up.Dynamic(), namespaces, loop.ObjectsOptions{
		Packed: true, Flows: n.flows, Changed: func(key types.NamespacedName) { s.add(n.queueKey(key)) },
		Strip: func(obj *unstructured.Unstructured) { strip(obj); dropAnnotations(obj) },
		Note:  func(obj *unstructured.Unstructured) string { return strings.Join(obj.GetFinalizers(), ",") },
	})
	n.down = loop.NewObjects(s.down.Dynamic(), namespaces, loop.ObjectsOptions{
		Labels: ownerLabel + "=" + s.owner, Packed: true, Flows: n.flows, Strip: loop.KeepManager(manager),
		Changed: func(place types.NamespacedName) {
			if name, ok := s.opts.Namespaces.Up(place.Name); ok {
				s.add(n.queueKey(types.NamespacedName{Name: name}))
			}
		},
	})
	return n
}

// keepNamespaces begins what NamespaceOptions ask for. The owner is known.
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

// start keeps the caches until ctx ends.
func (n *namespaceSync) start(ctx context.Context) {
	var caches sync.WaitGroup
	caches.Go(func() { _ = n.up.Start(ctx) })
	caches.Go(func() { _ = n.down.Start(ctx) })
	caches.Wait()
}

func (n *namespaceSync) fresh() error {
	return errors.Join(n.syncer.lease.err(), wrap("upstream", n.up.Err()), wrap("downstream", n.down.Err()))
}

// flows looks at all namespaces when both caches have become fresh.
func (n *namespaceSync) flows() {
	if n.fresh() != nil {
		return
	}
	for _, key := range n.up.Keys() {
		n.syncer.addBehind(n.queueKey(key))
	}
	for _, place := range n.down.Keys() {
		if name, ok := n.syncer.opts.Namespaces.Up(place.Name); ok {
			n.syncer.addBehind(n.queueKey(types.NamespacedName{Name: name}))
		}
	}
	for _, queued := range n.missed.take() {
		n.syncer.addBehind(queued)
	}
}

// synced records that an object in a namespace upstream is synced.
func (n *namespaceSync) synced(name string) {
	if n == nil || name == "" {
		return
	}
	n.mu.Lock()
	known := n.holds[name]
	n.holds[name] = true
	n.mu.Unlock()
	if !known {
		n.syncer.add(n.queueKey(types.NamespacedName{Name: name}))
	}
}

func (n *namespaceSync) status() TypeStatus {
	s := TypeStatus{Resource: namespaces, Err: n.fresh(), Upstream: n.up.Len(), Downstream: n.down.Len(), Held: n.valve.held()}
	n.lane.mu.Lock()
	defer n.lane.mu.Unlock()
	s.Problems = sortedProblems(n.problems)
	return s
}

// pass brings one namespace up to date on both sides.
func (n *namespaceSync) pass(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	if err := n.missed.stale(n.queueKey(key), n.fresh); err != nil {
		return n.syncer.putOff(err)
	}
	place, err := n.syncer.opts.Namespaces.Down(key.Name)
	if err != nil || reserved(key.Name, place) != "" {
		return 0, nil // nothing is synced there
	}
	u, _ := n.up.Get(key)
	d, _ := n.down.Get(types.NamespacedName{Name: place})
	if d != nil && !n.made(d) {
		d = nil // another client wrote our label
	}
	switch {
	case u == nil && d == nil:
		n.problem(ctx, key, "", "")
		n.valve.settle(key)
		n.forgetTries(key.Name)
	case u == nil:
		again, err = n.removeOrphan(ctx, key, d)
	case u.GetDeletionTimestamp() != nil:
		again, err = n.end(ctx, key, place, u, d)
	default:
		n.problem(ctx, key, "", "")
		n.valve.settle(key)
		n.forgetTries(key.Name)
		err = n.keep(ctx, key, u, d)
	}
	switch {
	case transient(err):
		return 0, loop.ErrBehind
	case apierrors.IsForbidden(err):
		n.problem(ctx, key, ReasonForbidden, err.Error())
	}
	return again, wrap("sync namespace "+key.Name, err)
}

// made reports whether this syncer wrote the owner label of a namespace. Earlier releases did not apply it but created it so.
func (n *namespaceSync) made(d metav1.Object) bool {
	return slices.ContainsFunc(d.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.FieldsV1 != nil && strings.Contains(string(e.FieldsV1.GetRawBytes()), `"f:`+ownerLabel+`"`)
	})
}

// keep holds a namespace upstream in which something is synced, and writes its labels and annotations down.
func (n *namespaceSync) keep(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured) error {
	n.mu.Lock()
	wanted := n.holds[key.Name] && (n.opts.Finish || n.opts.Delete)
	n.mu.Unlock()
	if wanted && !n.lane.holds(u) {
		if _, err := n.mergeFinalizers(ctx, u, append(u.GetFinalizers(), n.syncer.finalizer)); err != nil {
			return wrap("add the finalizer", err)
		}
		n.wrote(ctx, WriteFinalizer, key)
	}
	if d == nil || d.GetDeletionTimestamp() != nil || n.opts.Metadata == nil && !loop.Applied(d, manager) {
		return nil
	}
	return n.mark(ctx, key, u, d)
}

// wish is what is to be downstream of u; d is what is there, nil if nothing.
func (n *namespaceSync) wish(place string, u, d *unstructured.Unstructured) *unstructured.Unstructured {
	wish := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	wish.SetName(place)
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
	wish.SetLabels(labels)
	if len(annotations) > 0 {
		wish.SetAnnotations(annotations)
	}
	return wish
}

// mark applies the labels and annotations of u to d. What another client has set to another value stays.
func (n *namespaceSync) mark(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured) error {
	wish := n.wish(d.GetName(), u, d)
	if !loop.Differs(d, wish, manager) {
		return nil
	}
	wish.SetUID(d.GetUID())
	wish.SetResourceVersion(d.GetResourceVersion()) // a level that was raised meanwhile is not lowered
	after, err := n.applyDown(ctx, wish)
	if theirs := conflicts(err); len(theirs) > 0 {
		for _, field := range []string{"labels", "annotations"} {
			kept, _, _ := unstructured.NestedStringMap(wish.Object, "metadata", field)
			for name := range kept {
				if slices.ContainsFunc(theirs, func(f string) bool { return strings.HasPrefix(f, ".metadata."+field+"."+name+": ") }) {
					unstructured.RemoveNestedField(wish.Object, "metadata", field, name)
				}
			}
		}
		n.problem(ctx, key, ReasonForeign, "others have set fields of the namespace downstream, which stay: "+strings.Join(theirs, "; "))
		after, err = n.applyDown(ctx, wish)
	}
	if err != nil {
		return wrap("write labels and annotations downstream", err)
	}
	if after.GetResourceVersion() != d.GetResourceVersion() {
		n.wrote(ctx, WriteUpdate, key)
	}
	return nil
}

func (n *namespaceSync) applyDown(ctx context.Context, wish *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return n.downMeta("").Patch(ctx, wish.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, DryRun: n.syncer.dryRun()})
}

// create makes a namespace downstream with its labels and annotations, so that nothing is admitted there without them.
func (n *namespaceSync) create(ctx context.Context, place string) error {
	var u *unstructured.Unstructured
	if name, ok := n.syncer.opts.Namespaces.Up(place); ok {
		u, _ = n.up.Get(types.NamespacedName{Name: name})
	}
	wish := n.wish(place, u, nil)
	wish.SetResourceVersion(neverVersion)
	_, err := n.applyDown(ctx, wish)
	return err
}

// release removes our finalizer from a namespace upstream.
func (n *namespaceSync) release(ctx context.Context, u metav1.Object) error {
	n.mu.Lock()
	delete(n.holds, u.GetName())
	n.mu.Unlock()
	return n.dropFinalizer(ctx, u)
}

// retryAfter is when to look again at a namespace that could not be ended.
func (n *namespaceSync) retryAfter(name string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	wait := min(maxRetryBlocked, retryBlocked<<min(n.tries[name], 16))
	n.tries[name]++
	return wait
}

func (n *namespaceSync) forgetTries(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.tries, name)
}
