// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// retried is the delay after which the Splitter requeues a parent if the cache does not show its
// shards yet, or if another object has a shard's name.
const retried = 10 * time.Second

func (s *Splitter) work(ctx context.Context, key string) (again time.Duration, err error) {
	place, rest, _ := strings.Cut(key, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	i, err := strconv.Atoi(place)
	if err != nil {
		return 0, fmt.Errorf("splitter: key %q: %w", key, err)
	}
	k, parentKey := s.kinds[i], types.NamespacedName{Namespace: namespace, Name: name}
	defer func() { k.wake(s.room.done(k.holder(parentKey))) }()
	if k.objects.Err() != nil {
		if _, ok := k.objects.Get(parentKey); !ok {
			k.writes.forget(parentKey) // no event follows for a deleted parent once the cache is fresh
			k.forget(parentKey, nil)
		}
		return 0, nil // decide nothing from a stale cache: Flows requeues all parents when it is fresh
	}
	again, err = s.reconcile(ctx, k, parentKey)
	if apierrors.IsConflict(err) {
		return 0, loop.ErrBehind // another client has written: the event of its write requeues the parent
	}
	return again, err
}

func (s *Splitter) reconcile(ctx context.Context, k *kindState, key types.NamespacedName) (time.Duration, error) {
	unseen, err := k.unseen(ctx, key) // before the cache is read
	if err != nil {
		return 0, err
	}
	parent, ok := k.objects.Get(key)
	var mine []Shard
	var others []*unstructured.Unstructured
	list, silent, again, known := s.readiness.placing(time.Now())
	for _, at := range k.shards.Of(key) {
		obj, there := k.objects.Get(at)
		switch {
		case !there:
		case ok && cutFrom(obj, parent):
			mine = s.have(mine, obj, parent, silent)
		default:
			others = append(others, obj)
		}
	}
	slices.SortFunc(mine, func(a, b Shard) int { return strings.Compare(a.Cluster, b.Cluster) })
	if err := s.orphans(ctx, k, key, others); err != nil {
		return 0, err
	}
	if !ok {
		k.writes.forget(key)
		k.forget(key, nil)
		return 0, nil
	}
	at := s.situation(k, parent, list)
	switch {
	case parent.GetDeletionTimestamp() != nil || !s.divisible(parent) || at.idle:
		k.forget(key, mine)
		return s.end(ctx, k, parent, mine)
	case !known || !counted(s.room, s.kinds) || errors.Is(at.err, ErrUndecided):
		return 0, nil // an event requeues the parent when the clusters and shards are known, and when Place can decide
	case unseen > 0:
		return unseen, nil // a plan from a stale cache would remove the same replicas twice
	case !finalized(parent):
		// Write the finalizer first, so that no shard outlives its parent. The event of this write
		// requeues the parent.
		_, err := k.apply(ctx, key, parent, k.marked(parent, mine))
		return 0, err
	}
	if wrote, err := s.followAutoscaler(ctx, k, parent, at); wrote || err != nil {
		return 0, err
	}
	soon, err := s.divide(ctx, k, parent, at, silent, mine)
	return loop.Sooner(again, soon), err
}

// divide writes the desired shards of a parent, then the parent's status. It returns the time after which to requeue the
// parent, zero for none: because the cache does not show a write yet, because another object has a shard's name, or
// because something is not enough for all clusters, so that they take turns.
func (s *Splitter) divide(ctx context.Context, k *kindState, parent *unstructured.Unstructured, at situation, silent map[string]bool, mine []Shard) (again time.Duration, err error) {
	event := DividedEvent{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Parent: loop.KeyOf(parent), UID: parent.GetUID()}
	defer func() {
		if !apierrors.IsConflict(err) {
			event.Err = err
		}
		s.opts.Observer.divided(ctx, event)
	}()
	plan, want, limits, err := s.decide(k, parent, at, mine)
	if errors.Is(err, ErrUndecided) {
		k.forget(event.Parent, mine)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	event.Plan = plan
	if marked := k.marked(parent, slices.Concat(mine, want)); loop.Differs(parent, marked, Manager) && k.records() {
		_, err := k.apply(ctx, event.Parent, parent, marked) // the annotation precedes the shards; the event of this write requeues the parent
		return 0, err
	}
	have := byCluster(mine)
	var taken []string
	var errs []error
	var parts []Shard
	awaited := false
	for _, w := range want {
		desired := s.dress(parent, w)
		part := Shard{Cluster: w.Cluster, Object: have[w.Cluster].Object, Silent: silent[w.Cluster]}
		changed, err := s.write(ctx, k, event.Parent, part.Object, desired)
		switch {
		case errors.Is(err, errTaken):
			taken = append(taken, desired.GetName())
		case errors.Is(err, errLeaving):
		case errors.Is(err, errAwaited):
			awaited = true
		case apierrors.IsConflict(err):
			// Stop here, since this plan comes from an older state: the replicas that it removes
			// elsewhere may be the only available ones.
			return 0, joined(append(errs, err))
		case err != nil:
			errs = append(errs, err)
		case changed:
			event.Written = append(event.Written, desired.GetName())
			awaited = true
		default:
			part.Current = true
			awaited = awaited || part.Object == nil // the shard exists, but the cache did not show it: its event follows
		}
		parts = append(parts, part)
		delete(have, w.Cluster)
	}
	lost, failed := s.removeUnplanned(ctx, k, have, &event)
	if err := joined(append(errs, failed...)); err != nil {
		return 0, err
	}
	if awaited {
		return retried, nil // the events of the writes requeue the parent; the status is written then
	}
	if taken != nil {
		again = retried
	}
	if len(plan.Reasons) > 0 {
		again = loop.Sooner(again, at.next)
	}
	return again, s.report(ctx, k, parent, reported{plan: plan, limits: limits, parts: parts, lost: lost, taken: taken})
}

// removeUnplanned deletes the shards in clusters that the plan does not name, and records the
// deletions in event. It returns those shards that belong to lost clusters.
func (s *Splitter) removeUnplanned(
	ctx context.Context, k *kindState, shards map[string]Shard, event *DividedEvent,
) (lost []Shard, errs []error) {
	for _, cluster := range slices.Sorted(maps.Keys(shards)) {
		if s.readiness.lost(cluster) {
			lost = append(lost, shards[cluster])
		}
		obj := shards[cluster].Object
		err := s.remove(ctx, k, obj)
		k.writes.add(event.Parent, loop.KeyOf(obj), written{gone: obj.GetUID()}, err)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		event.Removed = append(event.Removed, obj.GetName())
	}
	return lost, errs
}

// joined returns the errors as one. It omits Conflicts if there are other errors: work does not
// return an error that contains a Conflict, so the other errors would be lost.
func joined(errs []error) error {
	if others := slices.DeleteFunc(slices.Clone(errs), apierrors.IsConflict); len(others) > 0 {
		errs = others
	}
	return errors.Join(errs...)
}

var (
	errTaken   = errors.New("another client's object has the name")
	errLeaving = errors.New("the object that has the name is being deleted")
	errAwaited = errors.New("the cache does not show the object yet")
)

// write creates a shard, or updates current to desired. It reports whether it changed the object.
// The error is errTaken, errLeaving or errAwaited if another object has the name or the cache is
// stale.
func (s *Splitter) write(ctx context.Context, k *kindState, parent types.NamespacedName, current, desired *unstructured.Unstructured) (changed bool, err error) {
	key := loop.KeyOf(desired)
	obj, there := k.objects.Get(key)
	if current == nil && there && obj.GetLabels()[v1alpha1.ParentLabel] == desired.GetLabels()[v1alpha1.ParentLabel] {
		current = obj // another client has changed the annotations of this shard
	}
	if current != nil {
		if current.GetDeletionTimestamp() != nil {
			return false, errLeaving // the shard is created again after the deletion
		}
		desired.SetUID(current.GetUID())
		desired.SetResourceVersion(current.GetResourceVersion()) // the next version in the cache is this write or later: see written
		keepFinalizer(current, desired)
		return k.apply(ctx, parent, current, desired)
	}
	if there {
		if parentOf(obj) == "" {
			return false, errTaken
		}
		return false, errLeaving // a shard of an earlier parent of this name: it is deleted first
	}
	// No object has resourceVersion 1. The apply therefore creates the shard, or fails with a
	// Conflict if an object exists that the cache does not show yet.
	desired.SetResourceVersion("1")
	if s.opts.Finalize {
		desired.SetFinalizers([]string{syncersFinalizer(clusterOf(desired))})
	}
	changed, err = k.apply(ctx, parent, nil, desired)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false, met(ctx, k.client(key.Namespace), desired)
	}
	return changed, err
}

// met reads live the object that has a shard's name and that the cache does not show. It returns
// errTaken if the object is not a shard.
func met(ctx context.Context, c dynamic.ResourceInterface, desired *unstructured.Unstructured) error {
	live, err := c.Get(ctx, desired.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return errAwaited
	case err != nil:
		return fmt.Errorf("read shard %s: %w", loop.KeyOf(desired), err)
	case parentOf(live) == "":
		return errTaken
	}
	return errAwaited // a shard of this parent, or of an earlier one of this name
}

// remove deletes a shard by UID, so that it does not delete a later object of the same name. If the
// shard is already being deleted and its cluster is gone, no syncer removes the shard's finalizer:
// then remove does, if the Splitter created the shard with it.
func (s *Splitter) remove(ctx context.Context, k *kindState, obj *unstructured.Unstructured) error {
	if obj.GetDeletionTimestamp() != nil {
		return s.letGo(ctx, k, obj)
	}
	err := k.client(obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(obj.GetUID())}, PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove shard %s: %w", loop.KeyOf(obj), err)
	}
	return nil
}

// orphans deletes those of the shards whose parent is gone or was replaced. It reads the parent
// live, since the cache may be stale.
func (s *Splitter) orphans(ctx context.Context, k *kindState, key types.NamespacedName, shards []*unstructured.Unstructured) error {
	if len(shards) == 0 {
		return nil
	}
	uid := types.UID("")
	switch live, err := k.client(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); {
	case err == nil:
		uid = live.GetUID()
	case !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err): // an unserved type does not prove absence
		return fmt.Errorf("read parent %s: %w", key, err)
	}
	for _, obj := range shards {
		if uid != "" && obj.GetLabels()[v1alpha1.ParentLabel] == string(uid) {
			continue
		}
		if err := s.remove(ctx, k, obj); err != nil {
			return err
		}
	}
	return nil
}

// end deletes the shards of a parent, and then removes the parent's finalizer. If the API server has
// shards that the cache does not show as shards of this parent, end returns the time after which to
// requeue the parent.
func (s *Splitter) end(ctx context.Context, k *kindState, parent *unstructured.Unstructured, mine []Shard) (time.Duration, error) {
	for _, shard := range mine {
		if err := s.remove(ctx, k, shard.Object); err != nil {
			return 0, err
		}
	}
	if len(mine) > 0 || !finalized(parent) {
		return 0, nil // events of the shards requeue the parent
	}
	c := k.client(parent.GetNamespace())
	marked, err := c.List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ParentLabel + "=" + string(parent.GetUID())})
	if err != nil {
		return 0, fmt.Errorf("list shards of %s: %w", loop.KeyOf(parent), err)
	}
	left := time.Duration(0)
	for i := range marked.Items {
		if obj := &marked.Items[i]; s.named(obj, parent) {
			left = retried
			if err := s.remove(ctx, k, obj); err != nil {
				return 0, err
			}
		}
	}
	if left > 0 {
		return left, nil
	}
	return 0, loop.RemoveFinalizer(ctx, k.meta(parent.GetNamespace()), parent, v1alpha1.ShardsFinalizer, Manager)
}
