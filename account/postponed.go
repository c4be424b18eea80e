// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// postponed has keys that rouse requeues together with all objects of the central plane's cache.
// The objects of these keys may be missing in that cache. The zero value is empty.
type postponed struct {
	mu   sync.Mutex
	keys map[types.NamespacedName]bool
}

func (p *postponed) add(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = map[types.NamespacedName]bool{}
	}
	p.keys[key] = true
}

// take removes the keys and returns them.
func (p *postponed) take() map[types.NamespacedName]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := p.keys
	p.keys = nil
	return keys
}

// postpone reports whether the cache of the central plane is stale. If it is, postpone stores key,
// and key is requeued when the cache is fresh.
func (r *Replicator) postpone(key types.NamespacedName) bool {
	if r.objects.Err() == nil {
		return false
	}
	r.postponed.add(key)
	return r.objects.Err() != nil // if the cache is fresh by now, rouse may have taken the keys before this add
}
