// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
)

// keptDownstream is part of the message about a refused object that an earlier release synced.
const keptDownstream = "; an earlier release made a copy downstream, which stays as it is"

// refusals reports refused objects. It writes nothing downstream. Upstream it removes our finalizer from an object
// that is being deleted or is no longer selected, once the downstream object is gone: the finalizer exists only to
// wait for that.
type refusals struct {
	*syncedType
	removals removals
}

// keepOut reports that an object is refused, with the reason and why, and writes nothing downstream. Once an origin
// that is being deleted or is not selected has no downstream object, keepOut removes our finalizer from the origin.
func (r refusals) keepOut(ctx context.Context, o observed, reason Reason, why string) (time.Duration, error) {
	r.valve.withdraw(o.ref)
	origin, err := r.origin(ctx, o)
	switch {
	case err != nil:
		return 0, err
	case r.unseen(o, origin):
		return 0, loop.ErrBehind
	}
	held := origin != nil && r.syncer.holds(origin)
	hasDownstream := o.d != nil
	var present metav1.Object
	if held {
		present, err = r.downstream(ctx, o, origin)
		hasDownstream = present != nil
		switch {
		case apierrors.IsForbidden(err):
			r.report(ctx, o.ref, reason, fmt.Sprintf("%s; an earlier release may have made a copy: %s", why, err))
			return retryRejected, nil
		case err != nil:
			return 0, err
		case !hasDownstream && ends(o, origin):
			if err := r.release(ctx, origin); err != nil {
				return 0, err
			}
		}
	}
	if o.u == nil && !hasDownstream {
		r.report(ctx, o.ref, "", "")
		r.records.forget(o.ref)
		return 0, nil
	}
	again := time.Duration(0)
	if hasDownstream {
		why += keptDownstream
		if held && origin.GetDeletionTimestamp() != nil {
			why += ", and the deletion waits for it: delete the copy, permit the type, or stop the syncer and call Detach"
			again = r.blockedBy(o.ref, present) // no cache shows objects of a refused type, so watch the copy by name
		}
	}
	r.report(ctx, o.ref, reason, why)
	return again, r.show(ctx, o)
}

// unseen reports whether the upstream cache is stale: it lacks an origin that the syncer selects.
func (r refusals) unseen(o observed, origin metav1.Object) bool {
	return o.u == nil && origin != nil && r.syncer.selects(origin)
}

// ends reports whether an origin is being deleted or is no longer selected.
func ends(o observed, origin metav1.Object) bool {
	return o.u == nil || origin.GetDeletionTimestamp() != nil
}

// origin returns the upstream object, read live if the caches lack it; nil if it does not exist.
func (r refusals) origin(ctx context.Context, o observed) (metav1.Object, error) {
	if o.u != nil {
		return o.u, nil
	}
	u, err := r.up.get(ctx, o.NamespacedName)
	if u == nil {
		return nil, err
	}
	return u, nil
}

// downstream returns the downstream object of an origin that has our finalizer, read live; nil if it does not exist.
func (r refusals) downstream(ctx context.Context, o observed, origin metav1.Object) (metav1.Object, error) {
	d, err := r.down.get(ctx, o.place)
	if d == nil {
		return nil, wrap("look for a copy downstream", err)
	}
	if is := provenanceOf(d, manager, r.syncer.owner).relationTo(o.NamespacedName, origin.GetUID(), true); is != copied && is != unknown {
		return nil, nil //nolint:nilnil // another object has the place
	}
	return d, nil
}

// release removes our finalizer from an object that has no downstream object, and our condition if it is no longer selected.
func (r refusals) release(ctx context.Context, origin metav1.Object) error {
	if u, ok := origin.(*metav1.PartialObjectMetadata); ok { // read live: it is not selected
		return r.removals.release(ctx, u)
	}
	return r.removals.finalizers.drop(ctx, origin)
}

// show writes the condition of a refused object upstream, if Options.Conditions is set and the upstream allows it.
func (r refusals) show(ctx context.Context, o observed) error {
	if o.u == nil || o.u.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.removals.conditions.show(ctx, o, false)
	if r.kind.Refused != "" && apierrors.IsForbidden(err) {
		return nil // a syncer needs no rights on types that it refuses
	}
	return err
}
