// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Content returns the fields of obj that are equal in all peers if the kind exists everywhere.
// These are the result of Payload. If Payload is nil, they are all fields except status, claim and
// metadata; labels and annotations are included. It is pure and does not modify obj. The error is
// Payload's, or means that obj is nil.
func (k Kind) Content(obj *unstructured.Unstructured) (map[string]any, error) {
	if obj == nil {
		return nil, errObjectNil
	}
	if k.Payload == nil {
		return k.content(obj), nil
	}
	fields, err := k.Payload(obj.DeepCopy())
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", k.Kind, err)
	}
	return fields, nil
}

// Digest returns the hash of the Content of obj, which revisions of a kind that exists
// Everywhere store. It is pure and does not modify obj.
func (k Kind) Digest(obj *unstructured.Unstructured) (string, error) {
	fields, err := k.Content(obj)
	if err != nil {
		return "", err
	}
	return hash(content(fields))
}

// State returns the protocol's state in obj, nil if obj has none. The error means that obj is nil,
// or has a state which cannot be read.
func (k Kind) State(obj *unstructured.Unstructured) (*v1alpha1.Fanout, error) {
	if obj == nil {
		return nil, errObjectNil
	}
	return k.Claim.read(obj)
}

// SeesEdits reports whether the protocol can distinguish an edit by hand, which writes no new
// revision, from fields that a server filled in. It is true if the claim is in the spec, or if
// Payload is set.
func (k Kind) SeesEdits() bool { return k.Claim.annotation == "" || k.Payload != nil }

// Claims returns the fields of obj that only coordinators write, by their paths: the protocol's
// state, the annotations of this package, and its finalizer. A program that writes objects on
// behalf of its users compares them before and after, to reject changes. It is pure and does not
// modify obj.
func (k Kind) Claims(obj *unstructured.Unstructured) map[string]any {
	claims := map[string]any{}
	if obj == nil {
		return claims
	}
	if k.Claim.annotation == "" {
		if spec, ok := obj.Object["spec"].(map[string]any); ok && spec[k.Claim.path()] != nil {
			claims["spec."+k.Claim.path()] = spec[k.Claim.path()]
		}
	}
	for name, value := range obj.GetAnnotations() {
		if strings.HasPrefix(name, ours) || k.Claim.annotation != "" && name == k.Claim.annotation {
			claims["metadata.annotations["+name+"]"] = value
		}
	}
	for _, name := range obj.GetFinalizers() {
		if strings.HasPrefix(name, ours) {
			claims["metadata.finalizers["+name+"]"] = true
		}
	}
	return claims
}

// Reclaim returns a copy of obj in which the protocol's state and the annotations of this package
// are replaced by those of the object of. It does not change finalizers. It is pure.
func (k Kind) Reclaim(obj, of *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	mine := func(name string) bool {
		return strings.HasPrefix(name, ours) || k.Claim.annotation != "" && name == k.Claim.annotation
	}
	maps.DeleteFunc(annotations, func(name, _ string) bool { return mine(name) })
	for name, value := range of.GetAnnotations() {
		if mine(name) {
			annotations[name] = value
		}
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
	if k.Claim.annotation != "" {
		return obj
	}
	unstructured.RemoveNestedField(obj.Object, "spec", k.Claim.path())
	if claim, ok, err := unstructured.NestedFieldCopy(of.Object, "spec", k.Claim.path()); ok && err == nil {
		_ = unstructured.SetNestedField(obj.Object, claim, "spec", k.Claim.path()) // an error means that spec is no object, which a server refuses
	}
	return obj
}
