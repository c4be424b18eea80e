// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/tracker"
)

func isTracker(key, _ string) bool { return tracker.Is(key) }

// desired returns the content that a central object has in the peers: all of the object except its
// status and the metadata that servers or tools have written. The content has the OriginAnnotation.
func desired(kind fanout.Kind, object *unstructured.Unstructured) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range object.DeepCopy().Object {
		if field != "metadata" && field != "status" {
			obj.Object[field] = value
		}
	}
	obj.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(kind.Kind))
	obj.SetNamespace(object.GetNamespace())
	obj.SetName(object.GetName())
	labels := maps.Clone(object.GetLabels())
	maps.DeleteFunc(labels, isTracker)
	obj.SetLabels(labels)
	annotations := maps.Clone(object.GetAnnotations())
	maps.DeleteFunc(annotations, isTracker)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OriginAnnotation] = string(object.GetUID())
	obj.SetAnnotations(annotations)
	return obj
}
