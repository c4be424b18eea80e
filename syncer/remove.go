// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// removeWith removes the copy of u, which is being deleted, and lets u go when the copy is gone. d is nil if the copies
// show none.
func (l *lane) removeWith(ctx context.Context, u, d *unstructured.Unstructured, place types.NamespacedName) (time.Duration, error) {
	key := loop.KeyOf(u)
	if d != nil {
		if is := l.relation(d, u, l.holds(u)); is == copied || is == preceded {
			return l.remove(ctx, key, d)
		}
	}
	l.valve.settle(key)
	if !l.holds(u) {
		return 0, nil
	}
	// The copy may have lost its label, so ask before u is let go.
	there, err := l.downClient(place.Namespace).Get(ctx, place.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !isMissingType(err):
	case err != nil:
		return 0, err
	default:
		switch l.relation(there, u, true) {
		case copied:
			again, err := l.remove(ctx, key, there)
			return max(again, soon), err
		case unknown:
			l.problem(ctx, key, ReasonCollision, "the deletion waits: "+howToMark(place, key, u.GetUID(), l.syncer.owner))
			return l.blocked(key, there), nil
		case foreign, preceded, misplaced:
		}
	}
	l.problem(ctx, key, "", "")
	return 0, l.dropFinalizer(ctx, u)
}

// removeOrphan removes a copy whose origin is not to be synced any more, after it has asked the upstream.
func (l *lane) removeOrphan(ctx context.Context, key, place types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	switch from := provenanceOf(d, manager, l.syncer.owner); {
	case from.origin == key, from.signed && from.lostOrigin: // nothing else has that place
	case from.signed:
		return l.removeMisplaced(ctx, key, place, d)
	default:
		l.problem(ctx, key, ReasonForeign, l.notOurs(place))
		return 0, nil
	}
	u, err := l.syncer.up.Metadata().Resource(l.kind.GVR).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !isMissingType(err):
		if err := l.syncer.sameUpstream(ctx); err != nil {
			return 0, err
		}
		return l.remove(ctx, key, d)
	case err != nil:
		return 0, err
	case l.selects(u):
		return 0, loop.ErrBehind // the copy of the upstream is behind
	}
	// It is no longer for this cluster. The finalizer shows that it once was, so it goes after the copy was deleted; it does
	// not wait until the copy is gone.
	if slices.Contains(u.Finalizers, l.syncer.finalizer) {
		l.withdrawn.add(u.UID)
	}
	again, err := l.remove(ctx, key, d)
	if err != nil {
		return 0, err
	}
	if err := l.clearCondition(ctx, u); err != nil {
		return 0, err
	}
	return again, l.dropFinalizer(ctx, u)
}

// isMissingType says whether it is not the object but the type that was not found.
func isMissingType(err error) bool {
	return slices.ContainsFunc(causes(err), func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// sameUpstream fails if it is another cluster that answers now than at the start: what it does not have was not deleted.
func (s *Syncer) sameUpstream(ctx context.Context) error {
	uid, err := uidOf(ctx, s.up)
	if err == nil && uid != s.upstreamUID {
		err = otherCluster(uid, s.upstreamUID)
	}
	return wrap("upstream", err)
}

// selects says whether an upstream object is to be synced.
func (l *lane) selects(u metav1.Object) bool {
	labels := u.GetLabels()
	return labels[l.syncer.opts.Label] == l.syncer.opts.Target || labels[v1alpha1.StateLabelPrefix+l.syncer.opts.Target] == v1alpha1.StateSync
}

// strayKey is by what is remembered of a downstream object in a namespace that holds none of the upstream's.
func strayKey(place types.NamespacedName) types.NamespacedName {
	place.Namespace = strayMark + place.Namespace
	return place
}

// stray is for a copy in a namespace that holds none of the upstream's.
func (l *lane) stray(ctx context.Context, place types.NamespacedName) (time.Duration, error) {
	if err := l.missed.stale(l.queuePlace(place), l.mayWork); err != nil {
		return l.syncer.putOff(err)
	}
	key := strayKey(place)
	defer l.looked(place)
	d, ok := l.down.Get(place)
	if _, mapped := l.originAt(place); mapped || !ok {
		l.problem(ctx, key, "", "")
		l.valve.settle(key)
		l.forget(key)
		return 0, nil
	}
	if reason, why := l.refuses(originOf(d), place, nil); reason != "" {
		l.problem(ctx, key, reason, why+stays)
		return 0, nil
	}
	switch from := provenanceOf(d, manager, l.syncer.owner); {
	case !from.signed:
		l.problem(ctx, key, ReasonForeign, l.notOurs(place))
		return 0, nil
	case from.lostOrigin: // no object upstream has that place
		return l.remove(ctx, key, d)
	}
	return l.removeMisplaced(ctx, key, place, d)
}

// removeMisplaced removes a copy that is not where its origin belongs: the namespaces were mapped otherwise when it was
// made. key is by what the queue finds it: the origin has a copy elsewhere.
func (l *lane) removeMisplaced(ctx context.Context, key, place types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	if right, err := l.placeOf(originOf(d)); err != nil || right == place {
		return 0, err
	}
	return l.remove(ctx, key, d)
}

const deletionMark = "deleted "

// deletionOf is what stands for the hash in a pending deletion of d.
func deletionOf(d *unstructured.Unstructured) string { return deletionMark + string(d.GetUID()) }

// deletes says whether the write was a deletion.
func (p pending) deletes() bool { return strings.HasPrefix(p.hash, deletionMark) }

// remove deletes the copy d, of which the origin was withdrawn, unless too much would go.
func (l *lane) remove(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	return l.removeIf(ctx, key, d, l.mayRemove)
}

// recreate deletes the copy d of a living origin, which is made anew.
func (l *lane) recreate(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (time.Duration, error) {
	return l.removeIf(ctx, key, d, func(context.Context, types.NamespacedName, *unstructured.Unstructured) (bool, error) {
		return true, nil
	})
}

// removeIf deletes the copy d and nothing else.
func (l *lane) removeIf(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured,
	may func(context.Context, types.NamespacedName, *unstructured.Unstructured) (bool, error),
) (time.Duration, error) {
	if d.GetDeletionTimestamp() != nil {
		return 0, nil
	}
	gone, version := deletionOf(d), d.GetResourceVersion()
	if wait := l.memo(key).down.awaited(gone, version); wait > 0 {
		return wait, nil
	}
	if ok, err := may(ctx, key, d); errors.Is(err, errFight) {
		return retryRefused, nil
	} else if !ok || err != nil {
		return 0, err
	}
	if !l.valve.pass(key, l.down.Len()) {
		l.problem(ctx, key, ReasonHeld, "too many deletions at once: they wait for a person to allow them")
		return 0, nil
	}
	l.dropCopy(key, d.GetUID())
	uid, background := d.GetUID(), metav1.DeletePropagationBackground
	err := l.downClient(d.GetNamespace()).Delete(ctx, d.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background, DryRun: l.syncer.dryRun(),
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, loop.ErrBehind // another than the copy shows
	case err != nil:
		return 0, wrap("delete downstream", err)
	}
	l.problem(ctx, key, "", "")
	l.remember(key, func(m *memo) { m.down = newPending(gone, version, "") })
	l.wrote(ctx, WriteDelete, cmp.Or(originOf(d), shown(key)))
	return lag, nil
}
