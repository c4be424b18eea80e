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

// Patcher is a dynamic.ResourceInterface or a metadata.ResourceInterface. Apply uses only the
// metadata of the answer, so a metadata.ResourceInterface suffices, and its answers are shorter.
type Patcher[T metav1.Object] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// Apply writes desired by server-side apply under manager, with force. If current equals desired,
// Apply makes no request and returns false. current is the object as read, or nil if it does not
// exist. The managedFields of current must contain the entry of manager; without it, current counts
// as different. The entry names the fields that manager owns, so that Apply removes a field that is
// no longer desired. Apply modifies neither object.
//
// desired contains apiVersion, kind, name, the namespace if there is one, and all the fields that manager
// wants. If desired has a UID, the write fails with a Conflict if the object was replaced. API servers do not
// check the UID in writes of a custom resource's status. So a write of a subresource also carries current's
// resourceVersion, and fails with a Conflict after any change of the object.
//
// subresources is empty or one name such as "status", which limits the comparison to the fields below it.
// Some values count as different each time: a value that the server rewrites (a quantity "1000m"), an empty
// map or list that other clients fill, and a desired object without any field.
func Apply[T metav1.Object](ctx context.Context, c Patcher[T], current, desired *unstructured.Unstructured, manager string, subresources ...string) (changed bool, err error) {
	if current != nil && !differs(current, desired, manager, subresources) {
		return false, nil
	}
	_, err = Write(ctx, c, current, desired, manager, subresources...)
	return true, err
}

// Write does the same as [Apply], without the comparison. It returns the resourceVersion of the
// object after the write, which is that of current if the server changed nothing.
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

// KeepManager returns a function for ObjectsOptions.Strip that keeps only the managers' entries of
// an object's managedFields. Apply needs these entries.
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
