// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// valve counts deletions of one type and shuts when too many would go.
type valve struct {
	cap DeleteCap

	mu      sync.Mutex
	gone    []time.Time // deletions within the time
	total   int         // how many objects there were before them
	shut    bool
	open    int                               // deletions that Release has allowed
	waiting map[types.NamespacedName]struct{} // what is held
}

func newValve(c DeleteCap) *valve {
	return &valve{cap: c, waiting: map[types.NamespacedName]struct{}{}}
}

// pass says whether key may be deleted now, of so many objects that there are.
func (v *valve) pass(key types.NamespacedName, present int) bool {
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
	if v.open > 0 {
		v.open--
		delete(v.waiting, key)
		return true
	}
	n := len(v.gone) + 1
	if v.shut || n > v.cap.Objects && float64(n) > v.cap.Share*float64(v.total) {
		v.shut = true
		v.waiting[key] = struct{}{}
		return false
	}
	v.gone = append(v.gone, now)
	return true
}

// settle says that key does not wait any more. With the last one the valve opens.
func (v *valve) settle(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.waiting[key]; !ok {
		return
	}
	delete(v.waiting, key)
	if len(v.waiting) == 0 {
		v.shut = false
	}
}

// release opens the valve for what waits and for so many more, and returns what waits.
func (v *valve) release(more int) []types.NamespacedName {
	v.mu.Lock()
	defer v.mu.Unlock()
	var keys []types.NamespacedName
	for key := range v.waiting {
		keys = append(keys, key)
	}
	v.open, v.shut, v.gone = len(keys)+more, false, nil
	return keys
}

func (v *valve) held() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.waiting)
}
