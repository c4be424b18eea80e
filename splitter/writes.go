// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// lag is how long a copy is given to show a write before the API server is asked.
const lag = 10 * time.Second

// writes are our own of a parent and its shards that the copy may not show yet, by the parent. A division that is worked
// out without one of them would take away once more what it has taken already.
//
// A process begins without any. Its copy begins with a consistent list, which shows all that was written before. What a
// process that has died had sent, and the API server carries out after that list, is not in it: it is at most one write of
// each shard, as it was wanted just before, and fails if the shard has been written since.
type writes struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[types.NamespacedName]written
}

func newWrites() *writes {
	return &writes{of: map[types.NamespacedName]map[types.NamespacedName]written{}}
}

// written is one write.
type written struct {
	// before is the resourceVersion of what it changes; empty: nothing is there yet. The write of a shard carries it, so
	// whatever the copy shows next is that write, or comes after it.
	before string
	gone   types.UID // of what it removes, instead
	until  time.Time // when the API server is asked
}

// shownBy says whether an object, nil if there is none, shows the write.
func (w written) shownBy(obj *unstructured.Unstructured) bool {
	switch {
	case w.gone != "":
		return obj == nil || obj.GetUID() != w.gone || obj.GetDeletionTimestamp() != nil
	case obj == nil:
		return w.before != ""
	}
	return obj.GetResourceVersion() != w.before
}

// add notes a write and its outcome. One that has failed need not be without effect, unless it was refused: of that the API
// server is asked at once. So is it of a Conflict with what the copy does not show yet, which is waited for in the same way.
func (w *writes) add(parent, object types.NamespacedName, what written, err error) {
	what.until = time.Now().Add(lag)
	if err != nil {
		if refused(err) && (what.before == "" || !apierrors.IsConflict(err)) {
			return
		}
		what.until = time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[parent] == nil {
		w.of[parent] = map[types.NamespacedName]written{}
	}
	w.of[parent][object] = what
}

// refused says whether a request that has failed has no effect.
func refused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// forget drops what was written for a parent.
func (w *writes) forget(parent types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, parent)
}

// apply writes desired, which was worked out from current (nil: there is none), if that differs.
func (k *sort) apply(ctx context.Context, parent types.NamespacedName, current, desired *unstructured.Unstructured, subresources ...string) (changed bool, err error) {
	if !loop.Differs(current, desired, Manager, subresources...) {
		return false, nil
	}
	before := ""
	if current != nil {
		before = current.GetResourceVersion()
	}
	after, err := loop.Write(ctx, k.meta(desired.GetNamespace()), current, desired, Manager, subresources...)
	if err != nil || after != before {
		k.writes.add(parent, loop.KeyOf(desired), written{before: before}, err)
	}
	return err == nil && after != before, err
}

// unseen returns how long to wait for a copy that does not show all that was written of a parent and its shards; 0: no
// more. Its event ends the wait. A copy that is late for long is compared with what is there: it may never show what a
// restored backup has undone.
func (k *sort) unseen(ctx context.Context, parent types.NamespacedName) (wait time.Duration, err error) {
	// Only the one worker that works on the parent writes for it.
	k.writes.mu.Lock()
	all := k.writes.of[parent]
	k.writes.mu.Unlock()
	for key, what := range all {
		obj, _ := k.objects.Get(key)
		if what.shownBy(obj) {
			delete(all, key)
			continue
		}
		left := time.Until(what.until)
		if left <= 0 {
			live, err := k.client(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				live = nil
			} else if err != nil {
				return 0, fmt.Errorf("read %s: %w", key, err)
			}
			if !what.shownBy(live) {
				delete(all, key)
				continue
			}
			left, what.until = lag, time.Now().Add(lag)
			all[key] = what
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	if len(all) == 0 {
		k.writes.forget(parent)
	}
	return wait, nil
}
