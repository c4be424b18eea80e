// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

var _ workqueue.Queue[string] = (*order)(nil)

// order is the order of keys in a queue: keys that put added come after all other keys. All methods
// but put are called under the queue's lock.
type order struct {
	first, last []string
	behind      map[string]bool // keys of last that have not been moved to first

	mu     sync.Mutex
	asking map[string]int // running calls of put, by key
}

func newOrder() *order { return &order{behind: map[string]bool{}, asking: map[string]int{}} }

// put calls add, and marks the key meanwhile, so that Push places the key behind all others.
func (o *order) put(key string, add func(string)) {
	o.mu.Lock()
	o.asking[key]++
	o.mu.Unlock()
	add(key)
	o.mu.Lock()
	if o.asking[key]--; o.asking[key] == 0 {
		delete(o.asking, key)
	}
	o.mu.Unlock()
}

func (o *order) isAsked(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asking[key] > 0
}

// Push adds a key that is not in the queue.
func (o *order) Push(key string) {
	if o.isAsked(key) {
		o.last = append(o.last, key)
		o.behind[key] = true
		return
	}
	o.first = append(o.first, key)
}

// Touch is called for a key that is in the queue. It moves a key from last to first, unless put
// adds it.
func (o *order) Touch(key string) {
	if o.behind[key] && !o.isAsked(key) {
		delete(o.behind, key)
		o.first = append(o.first, key)
	}
}

// Len returns the number of keys in the queue.
func (o *order) Len() int { return len(o.first) + len(o.behind) }

// Pop removes and returns the next key.
func (o *order) Pop() string {
	if len(o.first) > 0 {
		key := o.first[0]
		o.first[0] = ""
		o.first = o.first[1:]
		return key
	}
	for {
		key := o.last[0]
		o.last[0] = ""
		o.last = o.last[1:]
		if o.behind[key] {
			delete(o.behind, key)
			return key
		}
	}
}
