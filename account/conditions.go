// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// applyStatus applies the status of desired. Then it removes from the object each condition that
// desired lacks and for whose type owns returns true. A server-side apply alone does not remove
// such a condition if another client, such as a restore, has written it: the apply leaves the
// condition, or leaves only its type, which an API server rejects. After a rejection applyStatus
// removes these conditions, unless the object has changed, and returns the rejection. Then the next
// call succeeds.
func applyStatus(ctx context.Context, client dynamic.ResourceInterface, desired *unstructured.Unstructured, manager string, owns func(conditionType string) bool) error {
	wanted, _, _ := unstructured.NestedSlice(desired.Object, "status", "conditions")
	left := func(c any) bool {
		return owns(typeOf(c)) && !slices.ContainsFunc(wanted, func(w any) bool { return typeOf(w) == typeOf(c) })
	}
	after, err := client.ApplyStatus(ctx, desired.GetName(), desired, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if apierrors.IsInvalid(err) {
		now, unread := client.Get(ctx, desired.GetName(), metav1.GetOptions{})
		if unread != nil || now.GetResourceVersion() != desired.GetResourceVersion() {
			return err
		}
		if removed := removeConditions(ctx, client, now, manager, left); removed != nil {
			return removed
		}
		return err
	}
	if err != nil {
		return err
	}
	return removeConditions(ctx, client, after, manager, left)
}

// removeConditions removes from the status of obj the conditions for which left returns true. It
// fails if the object in the API server has changed since obj was read.
func removeConditions(ctx context.Context, client dynamic.ResourceInterface, obj *unstructured.Unstructured, manager string, left func(any) bool) error {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	patch := []map[string]any{{"op": "test", "path": "/metadata/resourceVersion", "value": obj.GetResourceVersion()}}
	for i := len(conditions) - 1; i >= 0; i-- {
		if left(conditions[i]) {
			patch = append(patch, map[string]any{"op": "remove", "path": fmt.Sprintf("/status/conditions/%d", i)})
		}
	}
	if len(patch) == 1 {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, obj.GetName(), types.JSONPatchType, data, metav1.PatchOptions{FieldManager: manager}, "status")
	return err
}
