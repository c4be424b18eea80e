// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Carrier selects where in an object the protocol keeps its state. The zero value is
// InSpec("fanout").
type Carrier struct {
	field      string
	annotation string
}

// InSpec returns a Carrier that keeps the state in the given field of spec, where CEL rules of the
// CRD protect the state.
func InSpec(field string) Carrier { return Carrier{field: field} }

// InAnnotation returns a Carrier that keeps the state as JSON in the annotation key, for kinds
// whose schema cannot be changed. Apply the objects of AdmissionPolicy to protect the annotation.
func InAnnotation(key string) Carrier { return Carrier{annotation: key} }

func (c Carrier) path() string {
	if c.field == "" {
		return "fanout"
	}
	return c.field
}

// read returns the protocol's state, or nil if the object has none. A state that cannot be
// parsed is an error, because an object with a damaged state must not count as one without state.
func (c Carrier) read(obj *unstructured.Unstructured) (*v1alpha1.Fanout, error) {
	var state v1alpha1.Fanout
	if c.annotation != "" {
		text, ok := obj.GetAnnotations()[c.annotation]
		if !ok {
			return nil, nil
		}
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			return nil, fmt.Errorf("annotation %s is not a fan-out claim: %w", c.annotation, err)
		}
		return &state, nil
	}
	raw, ok, err := unstructured.NestedMap(obj.Object, "spec", c.path())
	if err != nil {
		return nil, fmt.Errorf("spec.%s is not a fan-out claim: %w", c.path(), err)
	}
	if !ok {
		return nil, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &state); err != nil {
		return nil, fmt.Errorf("spec.%s is not a fan-out claim: %w", c.path(), err)
	}
	return &state, nil
}

// write puts the protocol's state into obj.
func (c Carrier) write(obj *unstructured.Unstructured, state *v1alpha1.Fanout) error {
	if c.annotation != "" {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[c.annotation] = string(text)
		obj.SetAnnotations(annotations)
		return nil
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state)
	if err != nil {
		return err
	}
	return unstructured.SetNestedMap(obj.Object, raw, "spec", c.path())
}

// remove deletes the protocol's state from obj.
func (c Carrier) remove(obj *unstructured.Unstructured) {
	if c.annotation != "" {
		annotations := obj.GetAnnotations()
		delete(annotations, c.annotation)
		obj.SetAnnotations(annotations)
		return
	}
	unstructured.RemoveNestedField(obj.Object, "spec", c.path())
}
