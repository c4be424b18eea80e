// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// handOver makes manager the owner of the content's fields in obj, as if manager had applied them;
// the coordinator keeps the claim's fields. Otherwise a field that manager later drops from its
// manifest would stay: the coordinator created the object, so the coordinator would own that field,
// too.
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
		// Other managers, such as a controller of the status, keep their fields.
		if old.Manager != fieldManager && (old.Manager != manager || old.Operation != metav1.ManagedFieldsOperationApply) {
			entries = append(entries, old)
		}
	}
	obj.SetManagedFields(entries)
}

// ownership returns the fields of c in the form of FieldsV1. A list is one field.
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
