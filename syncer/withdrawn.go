// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// withdrawals remembers which origins of one type were withdrawn from this Syncer: deleted, or no longer selected.
// Only a withdrawal is a reason to delete a downstream object. An absent origin is no reason: the upstream may
// have been restored from a backup.
type withdrawals struct {
	mu      sync.Mutex
	known   map[types.UID]uint64 // the value of clock when each was added last
	clock   uint64               // counts the additions
	order   []types.UID          // of known, the oldest first
	waiting map[ref]types.UID    // origins of downstream objects that are held
}

// mostWithdrawals bounds how many origins are remembered. If an origin is forgotten too early, its downstream object
// is held.
const mostWithdrawals = 10000

func (w *withdrawals) add(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(uid)
}

func (w *withdrawals) addLocked(uid types.UID) {
	if w.known == nil {
		w.known = map[types.UID]uint64{}
	}
	w.clock++
	_, before := w.known[uid]
	if w.known[uid] = w.clock; before {
		return
	}
	if w.order = append(w.order, uid); len(w.order) > mostWithdrawals {
		delete(w.known, w.order[0])
		w.order = slices.Delete(w.order, 0, 1)
	}
}

// now returns the present clock, for drop.
func (w *withdrawals) now() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// drop forgets that an origin was withdrawn, since a cache has the origin. The argument at is the result of the method
// now, called before the cache was read. A later withdrawal stays: the watch may report the deletion of an object
// while a reconcile works with its cached state.
func (w *withdrawals) drop(uid types.UID, at uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if added, ok := w.known[uid]; ok && added <= at {
		delete(w.known, uid)
		w.order = slices.DeleteFunc(w.order, func(other types.UID) bool { return other == uid })
	}
}

// has reports whether an origin was withdrawn. If so, it records that the downstream object of the ref is no longer
// held.
func (w *withdrawals) has(of ref, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.known[uid]
	if ok {
		delete(w.waiting, of)
	}
	return ok
}

// wait records that the downstream object of the origin with that UID is held.
func (w *withdrawals) wait(of ref, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[ref]types.UID{}
	}
	w.waiting[of] = uid
}

// release treats the origin of each held object as withdrawn if the func held returns true for that object. It returns
// these objects, and forgets which objects are held.
func (w *withdrawals) release(held func(ref) bool) []ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []ref
	for of, uid := range w.waiting {
		if held(of) {
			w.addLocked(uid)
			all = append(all, of)
		}
	}
	clear(w.waiting)
	return all
}
