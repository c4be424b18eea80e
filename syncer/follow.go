// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletePolicy is the policy for an upstream object whose downstream object another client deletes.
type DeletePolicy int

const (
	// RecreateCopy creates the downstream object again.
	RecreateCopy DeletePolicy = iota
	// DeleteUpstream deletes the upstream object as well. Two conditions must hold: this process saw the
	// downstream object in place, and a live read of the same downstream cluster does not find it. The deletion
	// upstream counts as a deletion, see DeleteCap. A downstream object is created again instead if it was deleted
	// while no syncer ran, or if its upstream object is for several clusters.
	DeleteUpstream
)

// follow deletes the origin of a downstream object that another client deleted. done is false if a live read finds
// an object with the namespace and name of the downstream object: then follow deletes nothing.
func (m removals) follow(ctx context.Context, o observed) (again time.Duration, done bool, err error) {
	present, err := m.down.get(ctx, o.place)
	switch {
	case err != nil:
		return 0, true, err
	case present != nil:
		m.records.dropDownstream(o.ref, "")
		return 0, false, nil
	}
	if err := m.syncer.sameDownstream(ctx); err != nil {
		return 0, true, err
	}
	if !m.valve.admit(o.ref, m.caches.one.Len()+m.caches.many.Len()) {
		m.report(ctx, o.ref, ReasonHeld, "too many deletions at once, by copies that were deleted downstream: they wait for a person to allow them")
		return 0, true, nil
	}
	uid, version := o.u.GetUID(), o.u.GetResourceVersion()
	err = m.up.removeIf(ctx, o.u, metav1.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, true, wrap("delete upstream", err)
	}
	m.report(ctx, o.ref, "", "")
	m.records.dropDownstream(o.ref, "")
	m.wrote(ctx, WriteDeleteUpstream, o.NamespacedName)
	return cacheDelay, true, nil
}
