// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// addFinalizer adds the Replicator's finalizer to the central object. The caller does this before
// any peer gets the object.
func (t *task) addFinalizer(ctx context.Context) error {
	if slices.Contains(t.object.GetFinalizers(), Finalizer) {
		return nil
	}
	_, err := t.finalize(ctx, append(slices.Clone(t.object.GetFinalizers()), Finalizer))
	return err
}

// removeFinalizer removes the Replicator's finalizer from the central object. done is false if the
// object had no such finalizer, or no longer exists.
func (t *task) removeFinalizer(ctx context.Context) (done bool, err error) {
	left := slices.DeleteFunc(slices.Clone(t.object.GetFinalizers()), func(f string) bool { return f == Finalizer })
	if len(left) == len(t.object.GetFinalizers()) {
		return false, nil
	}
	return t.finalize(ctx, left)
}

// finalize replaces the finalizers of the central object. The write fails if the object has changed
// since it was read. done is false if the object no longer exists.
func (t *task) finalize(ctx context.Context, finalizers []string) (done bool, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": t.object.GetUID(), "resourceVersion": t.object.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return false, err
	}
	_, err = clientFor(t.replicator.plane, t.replicator.kind, t.key.Namespace).Patch(ctx, t.key.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: ReplicatorFieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write finalizers of %s %s in the central plane: %w", t.replicator.kind.Kind, loop.KeyText(t.key), err)
	}
	return true, nil
}

// remove removes a deleted central object from all peers. gone is true if every peer has confirmed
// that nothing of the object is left.
func (t *task) remove(ctx context.Context) (gone bool, err error) {
	if !slices.Contains(t.object.GetFinalizers(), Finalizer) {
		return false, nil // no peer has it: the Replicator adds the finalizer before the object
	}
	if home := primary(t.observed); home != nil && home.copy.Origin == t.object.GetUID() {
		if done, err := t.removeHome(ctx, home); !done || err != nil {
			return false, err
		}
	}
	if anyUnreachable(t.observed) {
		return false, nil // an unreachable peer may still have the object
	}
	return t.confirmed(ctx)
}

// removeHome begins or continues the removal of the object from its home and all other peers. done
// is false if the removal must wait or has failed.
func (t *task) removeHome(ctx context.Context, home *observation) (done bool, err error) {
	removal := fanout.RemoveOptions{UID: home.copy.UID}
	committed := home.copy.Stage == fanoutv1alpha1.StageRemoving
	switch {
	case home.err != nil:
		t.message = fmt.Sprintf("its home %s is unreachable", home.peer)
		return false, nil
	case committed && anyUnreachable(t.observed):
		return false, nil // the removal continues when the peers are reachable
	case committed:
		removal.Unreachable = fanout.Forward
	default:
		held, wait := t.weigh()
		if t.wait = wait; wait > 0 || held != (removalHold{}) {
			t.message = held.message
			return false, t.record(ctx, held)
		}
	}
	// Before its commit, the removal reads in every peer whether the object's namespace contains an
	// object of Kind.Holds.
	err = t.do(ctx, "remove", func() (*fanout.Operation, error) { return t.replicator.remove(ctx, t.key, removal) })
	if occupied, ok := errors.AsType[*fanout.OccupiedError](err); ok && !committed {
		t.message = fanout.Message(occupied)
		return false, errors.Join(err, t.record(ctx, removalHold{holdOccupied, t.message}))
	}
	if err != nil && !errors.Is(err, fanout.ErrNotFound) {
		return false, err
	}
	return true, nil
}

// remove removes the object of this key from all peers.
func (r *Replicator) remove(ctx context.Context, key types.NamespacedName, opts fanout.RemoveOptions) (*fanout.Operation, error) {
	return r.coordinator.Remove(ctx, r.kind.GroupKind(), key, opts)
}

// letGo ends the work on an object after nothing of it is left in the peers. It drops the
// Replicator's state of the object, removes the finalizer in the central plane, and then calls
// Observer.Removed, unless the finalizer was removed before.
func (t *task) letGo(ctx context.Context) error {
	t.replicator.forget(t.key)
	done, err := t.removeFinalizer(ctx)
	if done {
		t.replicator.opts.Observer.removed(ctx, RemoveEvent{Object: t.replicator.object(t.key, t.object.GetUID())})
	}
	return err
}

// confirmed reads the object live from every peer, because a cache may be stale. It returns true if
// no peer has an object that was made for the central object.
func (t *task) confirmed(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	left, err := region.Each(ctx, t.replicator.directory, "confirm that "+t.replicator.kind.Kind+" "+loop.KeyText(t.key)+" is gone", region.All(),
		func(ctx context.Context, c *region.Conn) (bool, error) {
			obj, err := clientFor(c, t.replicator.kind, t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err): // a 404 for a type that is not served does not mean that the object is absent
				return false, nil
			case err != nil:
				return false, err
			}
			return obj.GetAnnotations()[OriginAnnotation] == string(t.object.GetUID()), nil
		})
	if err != nil {
		t.message = fanout.Message(err)
		return false, err
	}
	var still []region.PeerName
	for o := range left.All() {
		if o.Value {
			still = append(still, o.Peer)
		}
	}
	t.acted = t.acted || len(still) > 0
	return len(still) == 0, nil
}

// takeBack undoes an add if the central object no longer exists: another process may have found
// nothing in the peers and removed the finalizer before the add began.
func (t *task) takeBack(ctx context.Context) error {
	if !t.acted {
		return nil
	}
	now, err := clientFor(t.replicator.plane, t.replicator.kind, t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
	switch {
	case err == nil && now.GetUID() == t.object.GetUID():
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil // the plane is unreachable: its next event requeues the object
	}
	for _, s := range t.replicator.observe(t.key) {
		conn, err := t.replicator.directory.Conn(s.peer)
		if err != nil {
			continue
		}
		obj, err := clientFor(conn, t.replicator.kind, t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
		if err != nil || obj.GetAnnotations()[OriginAnnotation] != string(t.object.GetUID()) {
			continue
		}
		if c := replicaOf(t.replicator.kind, obj); c.Home {
			return t.do(ctx, "remove", func() (*fanout.Operation, error) {
				return t.replicator.remove(ctx, t.key, fanout.RemoveOptions{UID: c.UID, Unreachable: fanout.Forward})
			})
		}
	}
	return nil
}

// confirmTimeout bounds reads and writes in peers outside operations.
const confirmTimeout = 10 * time.Second
