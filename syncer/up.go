// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxStatus bounds the status of one cluster in an annotation: an object's annotations may be 256 KiB in all.
const maxStatus = 16 << 10

// bringUp writes upstream what the cluster reports of d, once it speaks of the present spec. d's spec is the present one.
func (l *lane) bringUp(ctx context.Context, key types.NamespacedName, u, d *unstructured.Unstructured, shared bool) (time.Duration, error) {
	status, ok := l.statusOf(u, d)
	if !ok {
		if len(l.downstreamStatus(d)) == 0 && l.memo(key).statusUp != (refusal{}) {
			l.statusKnown(key)
			return soon, nil // what was refused is there no more, and nothing is written of which an event would come
		}
		return 0, nil // what is known stays
	}
	wish := bare(u)
	var subresources []string
	switch {
	case shared:
		data, err := json.Marshal(status)
		if err != nil {
			return 0, fmt.Errorf("encode status: %w", err)
		}
		if len(data) > maxStatus {
			why := fmt.Sprintf("the status has %d bytes, and of an object that several clusters have at most %d are kept", len(data), maxStatus)
			l.remember(key, func(m *memo) { m.statusUp = refusal{why: why} })
			return 0, nil
		}
		wish.SetAnnotations(map[string]string{v1alpha1.StatusAnnotationPrefix + l.syncer.opts.Target: string(data)})
	case l.kind.UpStatus:
		wish.Object["status"] = status
		subresources = []string{"status"}
	default:
		wish.Object["status"] = status
		if present, _ := u.Object["status"].(map[string]any); sameButGeneration(present, status) {
			l.statusKnown(key)
			return 0, nil
		}
	}
	if !loop.Differs(u, wish, l.syncer.statusManager, subresources...) {
		l.statusKnown(key)
		return 0, nil
	}
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return 0, fmt.Errorf("encode status: %w", err)
	}
	hash := digest(data)
	m := l.memo(key)
	version, generation := u.GetResourceVersion(), fmt.Sprint(u.GetGeneration())
	if wait := m.statusUp.holds(hash, generation); wait > 0 {
		return wait, nil
	}
	if wait := m.up.awaited(hash, version); wait > 0 {
		return wait, nil
	}
	if m.up.made(hash, version) {
		l.remember(key, func(m *memo) { m.statusUp = refusal{} }) // of another status, meanwhile
		return 0, nil
	}
	if why := l.statusContested(key, hash, version); why != "" {
		l.remember(key, func(m *memo) {
			m.statusUp = refusal{hash: hash, state: generation, until: time.Now().Add(retryRefused), why: why}
		})
		return retryRefused, nil
	}
	if !shared {
		wish.SetResourceVersion(version) // of custom resources' status, servers do not look at the UID
		if data, err = json.Marshal(wish.Object); err != nil {
			return 0, fmt.Errorf("encode status: %w", err)
		}
	}
	after, err := l.upMeta(key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, data,
		l.syncer.patchBy(l.syncer.statusManager), subresources...)
	switch {
	case refusesStatus(err):
		l.remember(key, func(m *memo) {
			m.statusUp = refusal{hash: hash, state: generation, until: time.Now().Add(retryStatus), why: err.Error()}
		})
		return retryStatus, nil
	case err != nil:
		return 0, wrap("write status", err)
	}
	u.SetResourceVersion(after.GetResourceVersion())
	l.wrote(ctx, WriteStatus, key)
	l.written(part{key, true}, hash, version, after.GetResourceVersion())
	l.remember(key, func(m *memo) { m.up, m.statusUp = newPending(hash, version, after.GetResourceVersion()), refusal{} })
	return 0, nil
}

// statusKnown is for an object whose status upstream is that of its copy.
func (l *lane) statusKnown(key types.NamespacedName) {
	if m := l.memo(key); m.up != (pending{}) || m.statusUp != (refusal{}) {
		l.remember(key, func(m *memo) { m.up, m.statusUp = pending{}, refusal{} })
	}
}

// statusOf returns the status of d in terms of u: generations are those of u. It returns false if there is none, or if it
// speaks of another spec than the present one.
func (l *lane) statusOf(u, d *unstructured.Unstructured) (map[string]any, bool) {
	status := l.downstreamStatus(d)
	if len(status) == 0 {
		return nil, false
	}
	observed, has, _ := unstructured.NestedInt64(status, "observedGeneration")
	_, known, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	switch {
	case !l.kind.DownStatus:
		// Each write of the status makes a generation, so that nobody can have observed the present one.
	case has && observed < d.GetGeneration():
		return nil, false
	case !has && known:
		return nil, false // a copy that was made anew and was not looked at yet
	}
	status = runtime.DeepCopyJSON(status)
	unreported(l.kind.GroupKind(), status)
	ours := u.GetGeneration()
	if !l.kind.UpStatus {
		ours++ // writing it makes another generation
	}
	theirs := d.GetGeneration()
	if !l.kind.DownStatus {
		theirs-- // as has the one that wrote it there
	}
	translateGenerations(status, theirs, ours)
	return status, true
}

// translateGenerations replaces generations of one side by those of the other, wherever a status says what was observed.
func translateGenerations(v any, theirs, ours int64) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if observed, ok := inner.(int64); ok && name == "observedGeneration" {
				v[name] = max(0, ours-max(0, theirs-observed))
				continue
			}
			translateGenerations(inner, theirs, ours)
		}
	case []any:
		for _, inner := range v {
			translateGenerations(inner, theirs, ours)
		}
	}
}

// sameButGeneration compares what two statuses say beside generations.
func sameButGeneration(a, b map[string]any) bool {
	bare := func(status map[string]any) string {
		status = runtime.DeepCopyJSON(status)
		translateGenerations(status, 0, 0)
		data, _ := json.Marshal(status) // it came as JSON
		return string(data)
	}
	return bare(a) == bare(b)
}

// addFinalizer keeps u until its copy is gone. It changes u to what is then upstream. What the copy will show of it is
// returned, or nothing if u has changed meanwhile.
func (l *lane) addFinalizer(ctx context.Context, u *unstructured.Unstructured) (echo, error) {
	version := u.GetResourceVersion()
	known := echo{before: version, up: version, uid: u.GetUID()}
	if slices.Contains(u.GetFinalizers(), l.syncer.finalizer) {
		return known, nil
	}
	after, err := l.mergeFinalizers(ctx, u, append(u.GetFinalizers(), l.syncer.finalizer))
	if transient(err) || apierrors.IsNotFound(err) {
		known = echo{}
		after, err = l.addFinalizerLive(ctx, u)
	}
	if err != nil {
		return echo{}, wrap("add the finalizer", err)
	}
	u.SetFinalizers(after.GetFinalizers())
	u.SetResourceVersion(after.GetResourceVersion())
	if known != (echo{}) {
		known.up = after.GetResourceVersion()
	}
	l.wrote(ctx, WriteFinalizer, loop.KeyOf(u))
	return known, nil
}

// mergeFinalizers makes the finalizers of u those, if u is as it is upstream at present; if it is not, that is a Conflict.
// It costs the server much less than an apply, which any state of the object would do for.
func (l *lane) mergeFinalizers(ctx context.Context, u metav1.Object, finalizers []string) (*metav1.PartialObjectMetadata, error) {
	return l.mergeMeta(ctx, u, map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers})
}

// mergeMeta merges fields into the metadata of u, if it is still that object; if it is not, that is a Conflict.
func (l *lane) mergeMeta(ctx context.Context, u metav1.Object, fields map[string]any) (*metav1.PartialObjectMetadata, error) {
	fields["uid"] = u.GetUID()
	data, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return l.upMeta(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: l.syncer.upManager, DryRun: l.syncer.dryRun()})
}

// addFinalizerLive adds the finalizer to u as it is upstream at present, which the cache does not show yet. It is a Conflict
// if u is not to be synced any more, and if it changes before the write is carried out: a write that the server carries out
// late, when u is another cluster's, would leave a finalizer that no syncer removes.
func (l *lane) addFinalizerLive(ctx context.Context, u *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	live, err := l.upMeta(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (live.UID != u.GetUID() || live.DeletionTimestamp != nil || !l.selects(live)):
		return nil, apierrors.NewConflict(l.kind.GVR.GroupResource(), u.GetName(), errors.New("it has left since it was read"))
	case err != nil:
		return nil, err
	case slices.Contains(live.Finalizers, l.syncer.finalizer):
		return live, nil
	}
	return l.mergeFinalizers(ctx, live, append(live.Finalizers, l.syncer.finalizer))
}

// dropFinalizer lets u go, without what was said of its pods. u is as it is upstream at present; if it is not, that is a Conflict.
func (l *lane) dropFinalizer(ctx context.Context, u metav1.Object) error {
	finalizers := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return f == l.syncer.finalizer })
	if len(finalizers) == len(u.GetFinalizers()) {
		return nil
	}
	if finalizers == nil {
		finalizers = []string{}
	}
	l.withdrawn.add(u.GetUID())
	fields := map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": finalizers}
	if name := v1alpha1.UnscheduledAnnotationPrefix + l.syncer.opts.Target; u.GetAnnotations()[name] != "" {
		fields["annotations"] = map[string]any{name: nil}
	}
	_, err := l.mergeMeta(ctx, u, fields)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		l.wrote(ctx, WriteRelease, types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()})
	}
	return wrap("remove the finalizer", err)
}
