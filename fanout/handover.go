// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// handOver makes manager own the content of obj as if it had applied it, and
// leaves the claim to us. Without it a field that the requester's tool drops
// from its manifest later would stay, since the coordinator that created the
// object owned it too.
func handOver(obj *unstructured.Unstructured, kind Kind, manager string, now time.Time) {
	if manager == "" {
		manager = "atoll"
	}
	fields, err := json.Marshal(ownership(kind.content(obj)))
	if err != nil || len(obj.GetManagedFields()) == 0 {
		// A server that tracks no ownership has nothing to hand over.
		return
	}
	claim := map[string]any{"f:spec": map[string]any{"f:" + kind.Claim.path(): map[string]any{".": map[string]any{}}}}
	if kind.Claim.annotation != "" {
		claim = map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + kind.Claim.annotation: map[string]any{}}}}
	}
	ours, err := json.Marshal(claim)
	if err != nil {
		return
	}
	stamp := metav1.NewTime(now)
	entry := func(name string, operation metav1.ManagedFieldsOperationType, raw []byte) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager:    name,
			Operation:  operation,
			APIVersion: obj.GetAPIVersion(),
			Time:       &stamp,
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(string(raw)),
		}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry(manager, metav1.ManagedFieldsOperationApply, fields),
		entry(fieldManager, metav1.ManagedFieldsOperationUpdate, ours),
	}
	for _, old := range obj.GetManagedFields() {
		// Others, such as a controller's status, keep what they own.
		if old.Manager != fieldManager && (old.Manager != manager || old.Operation != metav1.ManagedFieldsOperationApply) {
			entries = append(entries, old)
		}
	}
	obj.SetManagedFields(entries)
}

// ownership is the set of fields of c in the form of FieldsV1. Lists are owned
// whole.
func ownership(c map[string]any) map[string]any {
	set := map[string]any{}
	for field, value := range c {
		inner, ok := value.(map[string]any)
		if !ok {
			set["f:"+field] = map[string]any{}
			continue
		}
		owned := ownership(inner)
		if len(inner) == 0 {
			owned["."] = map[string]any{}
		}
		set["f:"+field] = owned
	}
	return set
}
