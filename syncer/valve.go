// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// valve counts deletions of one type, and shuts when there are too many: see DeleteCap.
type valve struct {
	cap DeleteCap

	mu       sync.Mutex
	gone     []time.Time // times of the deletions that count
	total    int         // how many objects there were before these deletions
	shut     bool
	released int              // deletions that Release has allowed
	waiting  map[ref]struct{} // the objects whose deletion is held
}

func newValve(c DeleteCap) *valve {
	return &valve{cap: c, waiting: map[ref]struct{}{}}
}

// admit reports whether the object may be deleted now. present is the number of objects of the type that exist now. If
// the object may not be deleted, its deletion waits until withdraw or release.
func (v *valve) admit(of ref, present int) bool {
	if v.cap.Objects < 0 {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for len(v.gone) > 0 && now.Sub(v.gone[0]) >= v.cap.Within {
		v.gone = v.gone[1:]
	}
	if len(v.gone) == 0 {
		v.total = 0
	}
	v.total = max(v.total, present)
	if v.released > 0 {
		v.released--
		delete(v.waiting, of)
		return true
	}
	n := len(v.gone) + 1
	if v.shut || n > v.cap.Objects && float64(n) > v.cap.Share*float64(v.total) {
		v.shut = true
		v.waiting[of] = struct{}{}
		return false
	}
	v.gone = append(v.gone, now)
	return true
}

// withdraw records that the deletion of the object no longer waits. The valve opens when no deletion waits.
func (v *valve) withdraw(of ref) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.waiting[of]; !ok {
		return
	}
	delete(v.waiting, of)
	if len(v.waiting) == 0 {
		v.shut = false
	}
}

// release allows the deletions that wait, and in addition as many later deletions as the argument more gives. It
// returns the objects whose deletion waits.
func (v *valve) release(more int) []ref {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := slices.Collect(maps.Keys(v.waiting))
	v.released, v.shut, v.gone = len(all)+more, false, nil
	return all
}

func (v *valve) held() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.waiting)
}
