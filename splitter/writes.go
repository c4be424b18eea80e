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

// lag is how long to wait for the cache to show a write before reading the object live.
const lag = 10 * time.Second

// writes records, for each parent, the Splitter's writes to the parent and its shards that the
// cache may not show yet. A division that ignored these writes would remove the same replicas
// twice.
//
// A process starts without records: its cache starts with a consistent list, which shows all
// earlier writes. One kind of write is not in that list: a write that a dead process sent and that
// the API server carries out later. There is at most one such write for each shard, with the state
// that the dead process desired last. It fails if the shard has changed since.
type writes struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[types.NamespacedName]written
}

func newWrites() *writes {
	return &writes{of: map[types.NamespacedName]map[types.NamespacedName]written{}}
}

// written records one write of an object.
type written struct {
	// before is the resourceVersion of the object before the write; empty if the write creates it.
	// The write of a shard carries this resourceVersion, so the next version in the cache is this
	// write or a later one.
	before string
	gone   types.UID // for a deletion, which has no before: the UID of the deleted object
	until  time.Time // when to read the object live
}

// shownBy reports whether obj shows the effect of the write. A nil obj means that the object does
// not exist.
func (w written) shownBy(obj *unstructured.Unstructured) bool {
	switch {
	case w.gone != "":
		return obj == nil || obj.GetUID() != w.gone || obj.GetDeletionTimestamp() != nil
	case obj == nil:
		return w.before != ""
	}
	return obj.GetResourceVersion() != w.before
}

// add records a write and its outcome. It does not record a rejected write, which has no effect,
// unless the write carried a resourceVersion and err is a Conflict: then the cache is stale. After
// such a Conflict, and after an error that leaves the outcome unknown, unseen reads the object live
// before the next decision.
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

// refused reports whether an error proves that the request had no effect.
func refused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// forget drops the records of a parent.
func (w *writes) forget(parent types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of, parent)
}

// apply writes desired, which was derived from current, if the two differ. A nil current means that
// no object exists. It records the write and reports whether it changed the object.
func (k *kindState) apply(ctx context.Context, parent types.NamespacedName, current, desired *unstructured.Unstructured, subresources ...string) (changed bool, err error) {
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

// unseen returns how long to wait until the cache shows all writes to a parent and its shards; zero
// if the cache shows them all. An event ends the wait early. After lag, unseen looks for the write
// with a live read: the cache never shows a write that the restore of a backup has undone.
func (k *kindState) unseen(ctx context.Context, parent types.NamespacedName) (wait time.Duration, err error) {
	// Only one worker reconciles a parent at a time, and only that worker changes the parent's
	// records.
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
