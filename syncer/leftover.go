// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
)

// waitForRemovals is how long a return waits for deletions that fail, counted from the last deletion that succeeded. A
// return waits without limit for deletions that DeleteCap holds.
const waitForRemovals = 10 * time.Minute

// finishReturns ends each return of the lease once all objects that moved away are deleted. It runs until ctx ends.
func finishReturns(ctx context.Context, s *Syncer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lease.wake:
		}
		begun := s.lease.returnsSince()
		left := leftovers{}
		fewest, progress := 0, begun
		for over := false; !over; {
			n, known := left.count(s.synced(), begun, s.lease.length, time.Since(progress) >= waitForRemovals)
			if fewest == 0 || n < fewest {
				fewest, progress = n, time.Now()
			}
			over = s.lease.progress(n, known)
			if over {
				logging.From(ctx).Info("The objects that moved away are deleted")
				s.resume()
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(shortRetry):
			}
		}
	}
}

// leftovers are the downstream objects, by type and place, that may have moved away while the lease was lost. A type
// is missing until its caches are fresh for the first time.
type leftovers map[*syncedType]map[types.NamespacedName]bool

// count drops the objects that no longer wait for their deletion, and returns how many are left. known is false while
// types are not known or a type is missing. Once the duration length has passed since the time begun, count ignores
// missing types, and known is true. If stuck is true, count also drops the objects whose deletion fails.
func (l leftovers) count(all []*controller, begun time.Time, length time.Duration, stuck bool) (n int, known bool) {
	late := time.Since(begun) >= length
	known = len(all) > 0 || late
	for _, c := range all {
		if l[c.syncedType] == nil {
			if c.caches.staleErr() != nil {
				known = known && late
				continue
			}
			l[c.syncedType] = map[types.NamespacedName]bool{}
			for _, place := range c.caches.down.Keys() {
				l[c.syncedType][place] = true
			}
		}
		for place := range l[c.syncedType] {
			if !c.isLeftover(place, begun, stuck) {
				delete(l[c.syncedType], place)
			}
		}
		n += len(l[c.syncedType])
	}
	return n, known
}

// isLeftover reports whether a downstream object is to be deleted and its deletion has not begun. It returns false for
// an object that stays until a person decides, and for an object whose deletion was held already before the time
// since. If stuck is true, it returns true only for an object whose deletion is held.
func (r *syncedType) isLeftover(place types.NamespacedName, since time.Time, stuck bool) bool {
	d, ok := r.caches.down.Get(place)
	if !ok || d.GetDeletionTimestamp() != nil {
		return false
	}
	of := r.refAt(place)
	problem := r.records.get(of).problem
	switch problem.Reason {
	case ReasonForeign, ReasonCollision, ReasonNotPermitted, ReasonNotSyncable, ReasonNamespace, ReasonOriginGone, ReasonFight:
		return false
	case ReasonHeld:
		if problem.Since.Before(since) {
			return false
		}
	default:
		if stuck {
			return false
		}
	}
	if of.role == asStray {
		return true
	}
	u, _ := r.caches.origin(of.NamespacedName)
	return u == nil || u.GetDeletionTimestamp() != nil || r.syncer.relation(d, u, r.syncer.holds(u)) == preceded
}
