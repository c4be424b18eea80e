// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// lastApplied is the annotation in which kubectl keeps its last write, for its next one.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// own writes, as the caller, the metadata of the dry run's result that the peers do not share: the managers of fields,
// and the last write of kubectl. Without them, a later apply would not remove a field. The content is committed
// already, so own ignores errors, and writes nothing if the content has changed since.
//
// The managers are those of the region that computed the result.
func (r jointResource) own(ctx context.Context, result *unstructured.Unstructured, managers bool) {
	now, err := r.ResourceInterface.Get(ctx, result.GetName(), metav1.GetOptions{})
	if err != nil || !r.sameContent(now, result) {
		return
	}
	metadata := map[string]any{"resourceVersion": now.GetResourceVersion()}
	if managers && len(result.GetManagedFields()) > 0 {
		metadata["managedFields"] = result.GetManagedFields()
	}
	if text, ok := result.GetAnnotations()[lastApplied]; ok {
		metadata["annotations"] = map[string]string{lastApplied: text}
	}
	if len(metadata) == 1 {
		return
	}
	if patch, err := json.Marshal(map[string]any{"metadata": metadata}); err == nil {
		_, _ = r.ResourceInterface.Patch(ctx, result.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	}
}

func (r jointResource) sameContent(a, b *unstructured.Unstructured) bool {
	one, err := r.joint.kind.Content(a)
	if err != nil {
		return false
	}
	other, err := r.joint.kind.Content(b)
	return err == nil && reflect.DeepEqual(one, other)
}
