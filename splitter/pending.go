// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// errAwaited says that nothing was written, since the copy is yet to show what was written before.
var errAwaited = errors.New("its event is on the way")

// apply writes desired, which was worked out from current (nil: there is none), if that differs.
func (k *sort) apply(ctx context.Context, current, desired *unstructured.Unstructured, subresources ...string) (changed bool, err error) {
	if !loop.Differs(current, desired, Manager, subresources...) {
		return false, nil
	}
	key, before := loop.KeyOf(desired), ""
	if current != nil {
		before = current.GetResourceVersion()
	}
	if !k.pending.begin(key, before, time.Now()) {
		return false, errAwaited
	}
	after, err := loop.Write(ctx, k.client(desired.GetNamespace()), current, desired, Manager, subresources...)
	if err != nil || after == before {
		k.pending.end(key) // no event follows
	}
	return err == nil && after != before, err
}

// pending are our own writes that the copy may not show yet. What would be written meanwhile would be worked out from what
// is no more.
type pending struct {
	mu     sync.Mutex
	writes map[types.NamespacedName]write
}

type write struct {
	before string // the resourceVersion in the copy at the time of the write, empty if it had no object
	at     time.Time
}

func newPending() *pending { return &pending{writes: map[types.NamespacedName]write{}} }

// begin says whether an object may be written that the copy shows with that resourceVersion, and if so takes it that it is.
func (p *pending) begin(key types.NamespacedName, version string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, ok := p.writes[key]; ok && w.before == version && now.Sub(w.at) < retried/2 {
		return false
	}
	p.writes[key] = write{before: version, at: now}
	return true
}

// end is for an object that has changed in the copy, or has not been changed by a write.
func (p *pending) end(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.writes, key)
}
