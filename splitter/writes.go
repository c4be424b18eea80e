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

// lag is how long the cache may take to show a write before the object is read live.
const lag = 10 * time.Second

// writes records the Splitter's own writes to a parent and its shards, by parent, that the cache
// may not show yet. A division without them would take away the same replicas twice.
//
// A process starts without records: its cache starts with a consistent list, which shows all
// earlier writes. The list lacks a write that a dead process sent and that the API server carries
// out later: at most one for each shard, of the state desired just before. It fails if the shard
// has changed since.
type writes struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[types.NamespacedName]written
}

func newWrites() *writes {
	return &writes{of: map[types.NamespacedName]map[types.NamespacedName]written{}}
}

// written is one write.
type written struct {
	// before is the resourceVersion of the object before the write; empty: the write creates it.
	// The write of a shard carries it, so the next version in the cache is this write or a later
	// one.
	before string
	gone   types.UID // of a deletion, instead: the UID of the deleted object
	until  time.Time // when to read the object live
}

// shownBy reports whether obj, nil if there is no object, shows the write.
func (w written) shownBy(obj *unstructured.Unstructured) bool {
	switch {
	case w.gone != "":
		return obj == nil || obj.GetUID() != w.gone || obj.GetDeletionTimestamp() != nil
	case obj == nil:
		return w.before != ""
	}
	return obj.GetResourceVersion() != w.before
}

// add records a write and its outcome. Rejected writes have no effect and are not recorded. On
// any other error, the outcome is unknown, and on a Conflict the cache is stale: then the object
// is read live before the next decision.
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

// refused reports whether a failed request has had no effect.
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

// apply writes desired, which was derived from current (nil: no object), if they differ.
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

// unseen returns how long to wait until the cache shows all writes to a parent and its shards; 0:
// it does. An event ends the wait early. After lag it compares a write with a live read: the
// cache never shows a write that the restore of a backup has undone.
func (k *kindState) unseen(ctx context.Context, parent types.NamespacedName) (wait time.Duration, err error) {
	// Only the one worker that reconciles the parent records writes for it.
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
