// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

var _ workqueue.Queue[string] = (*order)(nil)

// order is in which order keys are worked on: those that were added behind come when there are no others. All but put is
// called under the lock of the queue that it is in.
type order struct {
	first, last []string
	behind      map[string]bool // which keys of last are still to be worked on there

	mu     sync.Mutex
	asking map[string]int // keys that are being added behind at present
}

func newOrder() *order { return &order{behind: map[string]bool{}, asking: map[string]int{}} }

// put adds a key behind all others, by add.
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

// Push adds a key that does not wait.
func (o *order) Push(key string) {
	if o.isAsked(key) {
		o.last = append(o.last, key)
		o.behind[key] = true
		return
	}
	o.first = append(o.first, key)
}

// Touch is for a key that waits already: it may come first now.
func (o *order) Touch(key string) {
	if o.behind[key] && !o.isAsked(key) {
		delete(o.behind, key)
		o.first = append(o.first, key)
	}
}

// Len is how many keys wait.
func (o *order) Len() int { return len(o.first) + len(o.behind) }

// Pop takes out the next key.
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
