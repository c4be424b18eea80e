// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// removals deletes downstream objects whose origin was withdrawn, and removes our finalizer upstream.
type removals struct {
	*syncedType
	rivals     rivals
	finalizers finalizers
	conditions conditions
}

func newRemovals(r *syncedType) removals {
	return removals{syncedType: r, rivals: rivals{r}, finalizers: finalizers{r}, conditions: conditions{r}}
}

// finish deletes the downstream object of an origin that is being deleted, and removes our finalizer once the
// downstream object is gone. If the cache has a downstream object, the last argument is its relation to the origin.
func (m removals) finish(ctx context.Context, o observed, is relation) (time.Duration, error) {
	if o.d != nil && (is == copied || is == preceded) {
		return m.remove(ctx, o.ref, o.d)
	}
	m.valve.withdraw(o.ref)
	if !m.syncer.holds(o.u) {
		return 0, nil
	}
	// The downstream object may have lost the label by which the cache finds it: read it live.
	present, err := m.down.objects(o.place.Namespace).Get(ctx, o.place.Name, metav1.GetOptions{})
	switch {
	case isAbsent(err):
	case err != nil:
		return 0, err
	default:
		switch m.syncer.relation(present, o.u, true) {
		case copied:
			again, err := m.remove(ctx, o.ref, present)
			return max(again, shortRetry), err
		case unknown:
			m.report(ctx, o.ref, ReasonCollision, "the deletion waits: "+howToMark(o.place, o.NamespacedName, o.u.GetUID(), m.syncer.owner))
			return m.blockedBy(o.ref, present), nil
		case foreign, preceded, misplaced:
		}
	}
	m.report(ctx, o.ref, "", "")
	return 0, m.finalizers.drop(ctx, o.u)
}

// orphan deletes a downstream object whose origin the caches lack, after a live read of the origin.
func (m removals) orphan(ctx context.Context, o observed) (time.Duration, error) {
	switch from := provenanceOf(o.d, manager, m.syncer.owner); {
	case from.origin == o.NamespacedName, from.signed && from.lostOrigin: // no other origin belongs at that place
	case from.signed:
		return m.misplaced(ctx, o.ref, o.d)
	default:
		m.report(ctx, o.ref, ReasonForeign, m.syncer.notOurs(o.place))
		return 0, nil
	}
	u, err := m.up.get(ctx, o.NamespacedName)
	switch {
	case err != nil:
		return 0, err
	case u == nil:
		if err := m.syncer.sameUpstream(ctx); err != nil {
			return 0, err
		}
		return m.remove(ctx, o.ref, o.d)
	case m.syncer.selects(u):
		return 0, loop.ErrBehind // the upstream cache is stale
	}
	// u is no longer assigned to this cluster; our finalizer proves that it was assigned before. withdrawn keeps this
	// proof: release removes the finalizer while the downstream object may still exist.
	if m.syncer.holds(u) {
		m.withdrawn.add(u.UID)
	}
	again, err := m.remove(ctx, o.ref, o.d)
	if err != nil || m.reported(o.ref, ReasonHeld) {
		return 0, err // while the deletion is held, the finalizer stays: the proof has to outlive this process
	}
	return again, m.release(ctx, u)
}

// misplaced deletes a downstream object whose namespace and name are not those that its origin maps to. The
// namespaces were mapped otherwise when it was created. The origin now has its downstream object elsewhere.
func (m removals) misplaced(ctx context.Context, of ref, d *unstructured.Unstructured) (time.Duration, error) {
	if right, err := m.placeOf(originOf(d)); err != nil || right == loop.KeyOf(d) {
		return 0, err
	}
	return m.remove(ctx, of, d)
}

// remove deletes d if its origin was withdrawn, unless the delete cap holds the deletion.
func (m removals) remove(ctx context.Context, of ref, d *unstructured.Unstructured) (time.Duration, error) {
	if done, wait := m.deleted(of, d); done {
		return wait, nil
	}
	if ok, err := m.mayRemove(ctx, of, d); errors.Is(err, errFight) {
		return retryRejected, nil
	} else if !ok || err != nil {
		return 0, err
	}
	return m.delete(ctx, of, d)
}

// recreate deletes d, whose origin stays. The next reconcile creates it again.
func (m removals) recreate(ctx context.Context, of ref, d *unstructured.Unstructured) (time.Duration, error) {
	if done, wait := m.deleted(of, d); done {
		return wait, nil
	}
	return m.delete(ctx, of, d)
}

// deleted reports whether d is being deleted. If the cache does not show that yet, wait is how long to wait for it.
func (m removals) deleted(of ref, d *unstructured.Unstructured) (done bool, wait time.Duration) {
	if d.GetDeletionTimestamp() != nil {
		return true, 0
	}
	wait = m.records.get(of).writes.spec.wait(deletionOf(d), d.GetResourceVersion())
	return wait > 0, wait
}

// delete deletes d, and no other object of its name, unless the delete cap holds the deletion.
func (m removals) delete(ctx context.Context, of ref, d *unstructured.Unstructured) (time.Duration, error) {
	if !m.valve.admit(of, m.caches.down.Len()) {
		m.report(ctx, of, ReasonHeld, "too many deletions at once: they wait for a person to allow them")
		return 0, nil
	}
	m.records.dropDownstream(of, d.GetUID())
	switch err := m.down.remove(ctx, d); {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, loop.ErrBehind // the object in the cache is gone or was replaced
	case err != nil:
		return 0, wrap("delete downstream", err)
	}
	m.report(ctx, of, "", "")
	m.records.update(of, func(now *detail) { now.writes.spec = newPending(deletionOf(d), d.GetResourceVersion(), "") })
	m.wrote(ctx, WriteDelete, cmp.Or(originOf(d), of.NamespacedName))
	return cacheDelay, nil
}

// letGo removes our condition and our finalizer from an upstream object that is no longer selected and has no
// downstream object.
func (m removals) letGo(ctx context.Context, key types.NamespacedName) error {
	u, err := m.up.get(ctx, key)
	switch {
	case err != nil || u == nil:
		return err
	case m.syncer.selects(u):
		return loop.ErrBehind // the upstream cache is stale
	}
	return m.release(ctx, u)
}

// release removes our condition and our finalizer from an upstream object that is no longer selected.
func (m removals) release(ctx context.Context, u *metav1.PartialObjectMetadata) error {
	if err := m.conditions.clear(ctx, u); err != nil {
		return err
	}
	return m.finalizers.drop(ctx, u)
}

// sameCluster returns err, or an error if the API reaches another cluster now than before. now and before are the UIDs
// of the two clusters. If another cluster lacks an object, this is no evidence of a deletion.
func sameCluster(now, before types.UID, err error) error {
	if err == nil && now != before {
		return fmt.Errorf("another cluster answers: kube-system has UID %s there, and had %s", now, before)
	}
	return err
}

func (s *Syncer) sameUpstream(ctx context.Context) error {
	uid, err := synctarget.ClusterUID(ctx, s.up)
	return wrap("upstream", sameCluster(uid, s.upstreamUID, err))
}

func (s *Syncer) sameDownstream(ctx context.Context) error {
	known := s.downUID()
	uid, err := synctarget.ClusterUID(ctx, s.down)
	return wrap("downstream", sameCluster(uid, known, err))
}
