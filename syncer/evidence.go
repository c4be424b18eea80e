// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// ruling is the decision about a downstream object whose origin is not selected.
type ruling int

const (
	// rulingUndecided: the caches do not decide, so the origin must be read live.
	rulingUndecided ruling = iota
	// rulingRemove: the origin was withdrawn from this Syncer, or its downstream object belongs at another place.
	rulingRemove
	// rulingStale: the origin is selected, so a cache is stale.
	rulingStale
	// rulingTakeOver: another object with the name of the origin is selected. That object takes over the
	// downstream object.
	rulingTakeOver
	// All other rulings keep the downstream object until a person decides: see heldBecause.
	holdMissing
	holdMissingChanged
	holdReplaced
	holdUnselected
)

// originState is the state of an origin, in a cache or read live. The zero value: the origin does not exist.
type originState struct {
	uid                           types.UID
	selected, deleting, finalizer bool
	placed                        bool // the downstream object in question is at the place of the origin
}

func (s *Syncer) originState(u metav1.Object) originState {
	return originState{uid: u.GetUID(), selected: s.selects(u), deleting: u.GetDeletionTimestamp() != nil, finalizer: s.holds(u)}
}

// ruleCached decides about a downstream object by its provenance and the state of its origin in the cache. It returns
// rulingUndecided if the two are not sufficient.
func ruleCached(from provenance, origin originState) ruling {
	ours := origin.uid == from.uid || from.lostUID && origin.finalizer
	switch {
	case origin == (originState{}) || !ours:
		return rulingUndecided
	case origin.selected && !origin.deleting && origin.placed:
		return rulingStale // the reconcile began with an older state of the caches
	}
	return rulingRemove
}

// ruleLive decides about a downstream object by its provenance and a live read of its origin.
func ruleLive(from provenance, origin originState) ruling {
	same := origin.uid == from.uid || from.lostUID
	switch {
	case origin == (originState{}) && from.lostUID:
		return holdMissingChanged
	case origin == (originState{}):
		return holdMissing
	case !same && origin.selected && !origin.deleting:
		return rulingTakeOver
	case !same:
		return holdReplaced
	case origin.selected && !origin.deleting:
		return rulingStale
	case origin.selected, origin.finalizer:
		return rulingRemove
	}
	return holdUnselected
}

// heldBecause returns why a downstream object is held, and how a person can keep it. The first UID is that of the
// origin by the marks. The second UID is that of the upstream object that has the name of the origin now.
func heldBecause(r ruling, origin types.NamespacedName, was, is types.UID) (fact, keep string) {
	switch r {
	case holdMissing:
		return fmt.Sprintf("origin %s with UID %s is missing upstream", origin, was), "create the object upstream again, to keep the copy"
	case holdMissingChanged:
		return fmt.Sprintf("origin %s is missing upstream, and another client has changed the annotation %s of the copy", origin, uidAnnotation),
			"create the object upstream again, to keep the copy"
	case holdReplaced:
		return fmt.Sprintf("origin %s had UID %s, and the upstream has UID %s, which is not for this target or is being deleted", origin, was, is),
			"create or label an object of this name upstream, to keep the copy"
	}
	return fmt.Sprintf("origin %s is not labelled for this target and never had its finalizer", origin), "label the object upstream again, to keep the copy"
}

// mayRemove reports whether d may be deleted: its origin was withdrawn from this Syncer, or its origin has its
// downstream object at another place. If neither is known, d stays: either another upstream object takes it over, or
// mayRemove reports a problem with the reason and the remedies. mayRemove reads the upstream live only if the caches
// cannot decide.
func (m removals) mayRemove(ctx context.Context, of ref, d *unstructured.Unstructured) (bool, error) {
	from := provenanceOf(d, manager, m.syncer.owner)
	if m.withdrawn.has(of, from.evidence(d)) {
		return true, nil
	}
	key := from.origin
	if from.lostOrigin {
		key = of.NamespacedName
	}
	var origin originState
	if u, _ := m.caches.origin(key); u != nil {
		place, err := m.placeOf(key)
		origin = m.syncer.originState(u)
		origin.placed = err == nil && place == loop.KeyOf(d)
	}
	rule := ruleCached(from, origin)
	if rule == rulingUndecided {
		u, err := m.up.get(ctx, key)
		if err != nil {
			return false, err
		}
		if origin = (originState{}); u != nil {
			origin = m.syncer.originState(u)
		}
		rule = ruleLive(from, origin)
	}
	switch rule {
	case rulingRemove:
		return true, nil
	case rulingStale:
		return false, loop.ErrBehind
	case rulingTakeOver:
		return false, m.takeOver(ctx, of, d, origin.uid)
	}
	fact, keep := heldBecause(rule, key, from.uid, origin.uid)
	m.withdrawn.wait(of, from.evidence(d))
	m.rivals.noticeUnknownOrigin(ctx, of, d, fact)
	m.report(ctx, of, ReasonOriginGone, fact+
		", and this syncer did not see it go: the upstream may have been restored from a backup, or another syncer made the copy: it stays: "+
		keep+"; delete the copy downstream, or call Release, to let it go")
	return false, nil
}

// takeOver assigns d to the upstream object with the given UID, which now has the name of d's origin. This happens
// after a restore, or after a tool created objects again. takeOver writes only the annotation with the UID; the next
// reconcile writes the rest of d. If the syncers of two upstreams take d over in turns, that is a fight.
func (m removals) takeOver(ctx context.Context, of ref, d *unstructured.Unstructured, uid types.UID) error {
	if len(m.rivals.overCap(of, originReplaced)) > 0 {
		m.syncer.otherSyncers.notice(ctx, fmt.Sprintf("%s %s downstream is made the copy of objects with different UIDs in turns", m.name, loop.KeyOf(d)))
		return m.rivals.yield(ctx, of, []string{originReplaced})
	}
	m.rivals.countRewrite(of, originReplaced)
	_, err := m.down.merge(ctx, d, manager, map[string]any{
		"resourceVersion": d.GetResourceVersion(), "annotations": map[string]any{uidAnnotation: uid},
	})
	if err != nil {
		return wrap("take over", err)
	}
	m.wrote(ctx, WriteUpdate, of.NamespacedName)
	return nil
}
