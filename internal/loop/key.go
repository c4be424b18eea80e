// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// KeyOf returns the key of an object.
func KeyOf(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// KeyText returns NAME or NAMESPACE/NAME, the form of keys in a Queue and in messages.
func KeyText(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// ParseKey reverses [KeyText].
func ParseKey(text string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Name: text}
}

// Identity returns an object that has only the type, namespace, name and UID of the given object.
func Identity(obj *unstructured.Unstructured) *unstructured.Unstructured {
	named := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind()}}
	named.SetNamespace(obj.GetNamespace())
	named.SetName(obj.GetName())
	named.SetUID(obj.GetUID())
	return named
}
