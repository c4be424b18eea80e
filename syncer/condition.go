// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxMessage bounds the message of a condition, in bytes.
const maxMessage = 1024

// condition is what an upstream object says of its syncing.
type condition struct {
	Status             metav1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
	LastTransitionTime string                 `json:"lastTransitionTime"`
}

// same says whether nothing but the time differs.
func (c condition) same(other condition) bool {
	c.LastTransitionTime = other.LastTransitionTime
	return c == other
}

// showCondition writes upstream whether u is synced, if that is asked for and known: it has a problem, or done says that the
// copy is as it should be. It changes u to what is then upstream.
func (l *lane) showCondition(ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured, shared, done bool) error {
	if !l.syncer.opts.Conditions {
		return nil
	}
	l.mu.Lock()
	problem, trouble := l.problems[key]
	plain := l.plain
	l.mu.Unlock()
	if !trouble && !done {
		return nil
	}
	next := condition{Status: metav1.ConditionTrue, Reason: "Synced"}
	if trouble {
		next = condition{Status: metav1.ConditionFalse, Reason: string(problem.Reason), Message: loop.Shorten(problem.Message, maxMessage)}
	}
	name := v1alpha1.SyncedCondition
	if shared {
		name += "-" + l.syncer.opts.Target
	}
	_, annotated := u.GetAnnotations()[v1alpha1.SyncedAnnotationPrefix+l.syncer.opts.Target]
	inStatus := l.kind.UpStatus && !plain && !annotated
	present := l.conditionOf(u, name, inStatus)
	if next.same(present) {
		return nil
	}
	next.LastTransitionTime = present.LastTransitionTime
	if next.Status != present.Status {
		next.LastTransitionTime = time.Now().UTC().Format(time.RFC3339)
	}
	if !inStatus {
		return l.annotate(ctx, key, u, next)
	}
	wish := bare(u)
	wish.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": name, "status": string(next.Status), "reason": next.Reason, "message": next.Message, "lastTransitionTime": next.LastTransitionTime,
	}}}
	err := l.writeCondition(ctx, key, u, wish, false, "status")
	if transient(err) || err == nil {
		return err
	}
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || isSchemaError(err) {
		// The type has no conditions, or others, or its list has one owner for all.
		l.mu.Lock()
		l.plain = true
		l.mu.Unlock()
		return l.annotate(ctx, key, u, next)
	}
	return err
}

// conditionOf returns what u says of its syncing at present.
func (l *lane) conditionOf(u *unstructured.Unstructured, name string, inStatus bool) (c condition) {
	if !inStatus {
		_ = json.Unmarshal([]byte(u.GetAnnotations()[v1alpha1.SyncedAnnotationPrefix+l.syncer.opts.Target]), &c) // what cannot be read is written anew
		return c
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, v := range all {
		fields, _ := v.(map[string]any)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		if text("type") == name {
			return condition{metav1.ConditionStatus(text("status")), text("reason"), text("message"), text("lastTransitionTime")}
		}
	}
	return c
}

// annotate writes c as an annotation: for types that have no place for a condition.
func (l *lane) annotate(ctx context.Context, key types.NamespacedName, u *unstructured.Unstructured, c condition) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	wish := bare(u)
	wish.SetAnnotations(map[string]string{v1alpha1.SyncedAnnotationPrefix + l.syncer.opts.Target: string(data)})
	return l.writeCondition(ctx, key, u, wish, true)
}

func (l *lane) writeCondition(ctx context.Context, key types.NamespacedName, u, wish *unstructured.Unstructured, force bool, subresources ...string) error {
	if len(subresources) > 0 {
		wish.SetResourceVersion(u.GetResourceVersion()) // of custom resources' status, servers do not look at the UID
	}
	data, err := json.Marshal(wish.Object)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	opts := l.syncer.patchBy(l.syncer.conditionManager)
	opts.Force = &force
	after, err := l.upMeta(key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, data, opts, subresources...)
	if err != nil {
		return wrap("write condition", err)
	}
	u.SetResourceVersion(after.GetResourceVersion())
	l.wrote(ctx, WriteCondition, key)
	return nil
}

// clearCondition removes what is said of the syncing of u, which is not synced any more. It changes u to what is then
// upstream.
func (l *lane) clearCondition(ctx context.Context, u *metav1.PartialObjectMetadata) error {
	for _, subresource := range []string{"status", ""} {
		if !slices.ContainsFunc(u.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == l.syncer.conditionManager && e.Subresource == subresource
		}) {
			continue
		}
		nothing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": l.kind.GVR.GroupVersion().String(), "kind": l.kind.Kind}}
		nothing.SetName(u.Name)
		nothing.SetUID(u.UID)
		nothing.SetResourceVersion(u.ResourceVersion)
		data, err := json.Marshal(nothing.Object)
		if err != nil {
			return fmt.Errorf("encode condition: %w", err)
		}
		var subresources []string
		if subresource != "" {
			subresources = []string{subresource}
		}
		after, err := l.upMeta(u.Namespace).Patch(ctx, u.Name, types.ApplyPatchType, data, l.syncer.patchBy(l.syncer.conditionManager), subresources...)
		if err != nil {
			return wrap("remove condition", err)
		}
		u.ResourceVersion = after.ResourceVersion
		l.wrote(ctx, WriteCondition, types.NamespacedName{Namespace: u.Namespace, Name: u.Name})
	}
	return nil
}
