// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Patcher is a dynamic.ResourceInterface or a metadata.ResourceInterface. Of what a server answers with only metadata are
// looked at here, and for the latter it encodes no more.
type Patcher[T metav1.Object] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// Apply writes desired by server-side apply under manager, with force, unless current has it already: then it makes no
// request and returns false. current is the object as it was read, nil if there is none; it must hold manager's entry of
// its managedFields, without which it counts as different. That entry tells which fields are ours, so one that is no
// longer desired is removed. It modifies neither.
//
// desired holds apiVersion, kind, name, namespace if any, and all the fields that manager wants; with a UID the write
// fails with a Conflict if the object was replaced. API servers do not look at the UID in writes of a custom resource's
// status; for a subresource of current the write therefore fails with a Conflict if the object changed at all. Applied each time, whether anything changes or not, are values that the server writes
// differently (a quantity "1000m"), maps and lists that are empty and that others fill, and a desired without any field. subresources is at most one, "status" for instance, on whose fields the comparison is
// then confined.
func Apply[T metav1.Object](ctx context.Context, c Patcher[T], current, desired *unstructured.Unstructured, manager string, subresources ...string) (changed bool, err error) {
	if current != nil && !differs(current, desired, manager, subresources) {
		return false, nil
	}
	_, err = Write(ctx, c, current, desired, manager, subresources...)
	return true, err
}

// Write is [Apply] of what is known to differ. It returns the resourceVersion that the object has then: that of current if
// nothing was changed after all.
func Write[T metav1.Object](ctx context.Context, c Patcher[T], current, desired *unstructured.Unstructured, manager string, subresources ...string) (version string, err error) {
	if current != nil && len(subresources) > 0 && desired.GetUID() != "" {
		desired = desired.DeepCopy()
		desired.SetResourceVersion(current.GetResourceVersion())
	}
	data, err := json.Marshal(desired.Object)
	if err != nil {
		return "", fmt.Errorf("encode %s %s: %w", desired.GetKind(), KeyOf(desired), err)
	}
	after, err := c.Patch(ctx, desired.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: new(true)}, subresources...)
	if err != nil {
		return "", fmt.Errorf("apply %s %s: %w", desired.GetKind(), KeyOf(desired), err)
	}
	return after.GetResourceVersion(), nil
}

// KeepManager returns a Strip that leaves only what managers own in an object's managedFields: what Apply needs.
func KeepManager(managers ...string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		meta, ok := obj.Object["metadata"].(map[string]any)
		if !ok {
			return
		}
		entries, ok := meta["managedFields"].([]any)
		if !ok {
			return
		}
		kept := slices.DeleteFunc(entries, func(e any) bool {
			entry, ok := e.(map[string]any)
			manager, named := entry["manager"].(string)
			return !ok || !named || !slices.Contains(managers, manager)
		})
		if len(kept) == 0 {
			delete(meta, "managedFields")
			return
		}
		meta["managedFields"] = kept
	}
}
