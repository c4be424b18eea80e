// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/region"
)

// The time until the next write to a cached object that its peer no longer has. It doubles.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = time.Minute
)

// outdated remembers, for one kind of object in one peer, the cached versions that the peer proved to be outdated. The watch
// will bring the present version, but it may be late for minutes: meanwhile writes to the cached version are repeated with
// backoff. It is safe for concurrent use.
type outdated struct {
	mu    sync.Mutex
	byKey map[region.Key]proof
}

// proof is one outdated version.
type proof struct {
	uid     types.UID
	version string
	times   int // that the peer proved it
	until   time.Time
}

func (p proof) of(obj *unstructured.Unstructured) bool {
	return p.uid == obj.GetUID() && p.version == obj.GetResourceVersion()
}

// wait returns how long a write to obj has to wait; zero: not at all.
func (o *outdated) wait(k region.Key, obj *unstructured.Unstructured, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.byKey[k]
	if ok && !p.of(obj) {
		delete(o.byKey, k)
	}
	if !ok || !p.of(obj) {
		return 0
	}
	return max(0, p.until.Sub(now))
}

// prove notes that obj is outdated, and returns the time until the next write to it.
func (o *outdated) prove(k region.Key, obj *unstructured.Unstructured, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	times := 1
	if p, ok := o.byKey[k]; ok && p.of(obj) {
		times += p.times
	}
	if o.byKey == nil {
		o.byKey = map[region.Key]proof{}
	}
	pause := backoff.After(times, firstPause, lastPause)
	o.byKey[k] = proof{obj.GetUID(), obj.GetResourceVersion(), times, now.Add(pause)}
	return pause
}

// forget drops a region whose object the cache does not have.
func (o *outdated) forget(k region.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byKey, k)
}
