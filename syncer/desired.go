// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

const (
	// ownerLabel is on each downstream object. Its value identifies the upstream and the target of the syncer that
	// made the object.
	ownerLabel = "syncer.atoll.dev/owner"
	// originAnnotation has the namespace and name of the origin, and uidAnnotation its UID. appliedAnnotation has the
	// hash of the content that the syncer wrote last.
	originAnnotation  = "syncer.atoll.dev/origin"
	uidAnnotation     = "syncer.atoll.dev/uid"
	appliedAnnotation = "syncer.atoll.dev/applied"
)

// originOf returns the key in the origin annotation of d. It returns zero if no origin of d can have that key: the key
// is not valid on an API server, or only one of the origin and d is in a namespace.
func originOf(d metav1.Object) types.NamespacedName {
	origin := loop.ParseKey(d.GetAnnotations()[originAnnotation])
	valid := origin.Name != "" && (origin.Namespace == "") == (d.GetNamespace() == "") &&
		len(content.IsPathSegmentName(origin.Name)) == 0 && len(content.IsPathSegmentName(origin.Namespace)) == 0
	if !valid {
		return types.NamespacedName{}
	}
	return origin
}

// desired is the desired state of a downstream object.
type desired struct {
	*unstructured.Unstructured
	hash    string
	content []byte // all but the metadata, encoded
}

// body returns w as JSON.
func (w *desired) body() ([]byte, error) {
	meta, err := json.Marshal(w.Object["metadata"])
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return slices.Concat([]byte(`{"metadata":`), meta, []byte(","), w.content[1:]), nil // content is never an empty object: it has at least a kind
}

// desired returns the desired downstream object of u, with the namespace and name of place. d is the present
// downstream object, or nil if it is absent. The result takes over the content of u, which must not be used
// afterwards.
func (s specs) desired(u, d *unstructured.Unstructured, place types.NamespacedName) (*desired, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range u.Object {
		if field != "metadata" && field != "status" {
			obj.Object[field] = value
		}
	}
	obj.SetName(place.Name)
	obj.SetNamespace(place.Namespace)
	obj.SetLabels(synced(u.GetLabels(), s.syncer.opts.Label))
	obj.SetAnnotations(synced(u.GetAnnotations(), s.syncer.opts.Label))
	s.rules.apply(s.kind.GroupKind(), obj, func(r rule) bool {
		return d != nil && d.GetDeletionTimestamp() == nil && !loop.OwnsPath(d, manager, r.names()...) && s.mayBeTaken(r, loop.KeyOf(u))
	})
	gvk := obj.GroupVersionKind()
	for _, transform := range s.syncer.opts.Transform {
		if err := transform(obj); err != nil {
			return nil, err
		}
	}
	if loop.KeyOf(obj) != place || obj.GroupVersionKind() != gvk {
		return nil, errors.New("a transformer changed the type, name or namespace, which it must not")
	}
	delete(obj.Object, "status")
	withoutNulls(obj.Object)
	labels, annotations := orEmpty(obj.GetLabels()), orEmpty(obj.GetAnnotations())
	labels[ownerLabel] = s.syncer.owner
	annotations[originAnnotation], annotations[uidAnnotation] = loop.KeyText(loop.KeyOf(u)), string(u.GetUID())
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	w := &desired{Unstructured: obj}
	metadata := obj.Object["metadata"]
	delete(obj.Object, "metadata")
	var err error
	w.content, err = json.Marshal(obj.Object)
	obj.Object["metadata"] = metadata
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	data, err := w.body()
	if err != nil {
		return nil, err
	}
	w.hash = synctarget.Digest(data)
	annotations[appliedAnnotation] = w.hash
	obj.SetAnnotations(annotations)
	return w, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// withoutNulls removes fields that are null, such as the creationTimestamp of a template. They have no meaning, and
// some servers treat them as a change.
func withoutNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner == nil {
				delete(v, name)
				continue
			}
			withoutNulls(inner)
		}
	case []any:
		for _, inner := range v {
			withoutNulls(inner)
		}
	}
}
