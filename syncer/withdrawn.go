// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// withdrawals remembers which origins of one type were withdrawn from this Syncer: deleted, or no longer selected. Only
// that is a reason to delete a copy. The upstream's state is not: it may have been restored from a backup.
type withdrawals struct {
	mu      sync.Mutex
	known   map[types.UID]uint64               // when each was added
	clock   uint64                             // of the last one that was added
	order   []types.UID                        // of known, the oldest first
	waiting map[types.NamespacedName]types.UID // origins of copies that are held, by the object's key
}

// mostWithdrawals bounds how many origins are remembered. One that is forgotten too early has its copy held.
const mostWithdrawals = 10000

func (w *withdrawals) add(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(uid)
}

func (w *withdrawals) addLocked(uid types.UID) {
	if w.known == nil {
		w.known = map[types.UID]uint64{}
	}
	w.clock++
	_, before := w.known[uid]
	if w.known[uid] = w.clock; before {
		return
	}
	if w.order = append(w.order, uid); len(w.order) > mostWithdrawals {
		delete(w.known, w.order[0])
		w.order = slices.Delete(w.order, 0, 1)
	}
}

// now is for drop.
func (w *withdrawals) now() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// drop forgets that an origin was withdrawn, since a cache that was read after the time at has it. What was withdrawn after
// that time stays: the watch may report that an object went while somebody works with what the cache had of it.
func (w *withdrawals) drop(uid types.UID, at uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if added, ok := w.known[uid]; ok && added <= at {
		delete(w.known, uid)
		w.order = slices.DeleteFunc(w.order, func(other types.UID) bool { return other == uid })
	}
}

// has reports whether an origin was withdrawn; if so, key no longer waits.
func (w *withdrawals) has(key types.NamespacedName, uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.known[uid]
	if ok {
		delete(w.waiting, key)
	}
	return ok
}

func (w *withdrawals) wait(key types.NamespacedName, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[types.NamespacedName]types.UID{}
	}
	w.waiting[key] = uid
}

// release counts the origin of each copy that is held as withdrawn, and returns the keys for which held is true.
func (w *withdrawals) release(held func(types.NamespacedName) bool) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []types.NamespacedName
	for key, uid := range w.waiting {
		if held(key) {
			w.addLocked(uid)
			keys = append(keys, key)
		}
	}
	clear(w.waiting)
	return keys
}

// mayRemove reports whether the origin of the copy d was withdrawn from this Syncer, or has its copy elsewhere. If that is not
// known, the copy is held and the problem of key says what decides. It reads the upstream live only if the caches do not have
// the origin.
func (l *lane) mayRemove(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured) (bool, error) {
	from := provenanceOf(d, manager, l.syncer.owner)
	if l.withdrawn.has(key, from.evidence(d)) {
		return true, nil
	}
	origin := from.origin
	if from.lostOrigin {
		origin = shown(key)
	}
	if u, _ := l.upstream(origin); u != nil && (u.GetUID() == from.uid || from.lostUID && l.holds(u)) {
		place, err := l.placeOf(origin)
		if err == nil && u.GetDeletionTimestamp() == nil && l.selects(u) && place == loop.KeyOf(d) {
			return false, loop.ErrBehind // the pass began with an older state of the caches
		}
		return true, nil
	}
	hold := func(fact, keep string) (bool, error) {
		l.hold(ctx, key, d, from.evidence(d), fact, keep)
		return false, nil
	}
	u, err := l.upMeta(origin.Namespace).Get(ctx, origin.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && !isMissingType(err) && from.lostUID:
		return hold(fmt.Sprintf("origin %s is missing upstream, and another client has changed the annotation %s of the copy", origin, uidAnnotation), "create the object upstream again, to keep the copy")
	case apierrors.IsNotFound(err) && !isMissingType(err):
		return hold(fmt.Sprintf("origin %s with UID %s is missing upstream", origin, from.uid), "create the object upstream again, to keep the copy")
	case err != nil:
		return false, err
	case u.UID != from.uid && !from.lostUID && u.DeletionTimestamp == nil && l.selects(u):
		return false, l.takeOver(ctx, key, d, u.UID)
	case u.UID != from.uid && !from.lostUID:
		return hold(fmt.Sprintf("origin %s had UID %s, and the upstream has UID %s, which is not for this target or is being deleted", origin, from.uid, u.UID),
			"create or label an object of that name upstream, to keep the copy")
	case u.DeletionTimestamp == nil && l.selects(u):
		return false, loop.ErrBehind // the cache does not show the origin yet
	case l.selects(u), l.holds(u):
		return true, nil
	}
	return hold(fmt.Sprintf("origin %s is not labelled for this target and never had its finalizer", origin), "label the object upstream again, to keep the copy")
}

// hold reports that a copy is not deleted, and what decides about it. evidence is what Release is to count as withdrawn.
func (l *lane) hold(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured, evidence types.UID, fact, keep string) {
	l.withdrawn.wait(key, evidence)
	l.noticeStranger(ctx, d, fact)
	l.problem(ctx, key, ReasonOriginGone, fact+
		", and this syncer did not see it go: the upstream may have been restored from a backup, or another syncer made the copy: it stays: "+
		keep+"; delete the copy downstream, or call Release, to let it go")
}

// takeOver makes d the copy of the object that the upstream has now under the name of its origin, as after a restore and
// whatever makes objects again. The next pass writes the rest of it. Two upstreams that both have such an object and sync to
// one place would do this in turns, which is a fight.
func (l *lane) takeOver(ctx context.Context, key types.NamespacedName, d *unstructured.Unstructured, uid types.UID) error {
	if len(l.tooOften(key, originReplaced)) > 0 {
		l.syncer.noticeAnother(ctx, fmt.Sprintf("%s %s downstream is made the copy of objects with different UIDs in turns", l.name, loop.KeyOf(d)))
		return l.yield(ctx, key, []string{originReplaced})
	}
	l.again(key, originReplaced)
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": d.GetUID(), "resourceVersion": d.GetResourceVersion(), "annotations": map[string]any{uidAnnotation: uid},
	}})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = l.downMeta(d.GetNamespace()).Patch(ctx, d.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager, DryRun: l.syncer.dryRun()})
	if err != nil {
		return wrap("take over", err)
	}
	l.wrote(ctx, WriteUpdate, key)
	return nil
}
