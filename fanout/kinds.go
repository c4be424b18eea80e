// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/argument"
)

// kinds finds the kinds of Options.
type kinds struct{ opts *Options }

// find returns the kind of a group and kind.
func (ks *kinds) find(gk schema.GroupKind) (Kind, error) {
	for _, k := range ks.opts.Kinds {
		if k.GroupKind() == gk {
			return k, nil
		}
	}
	known := make([]string, len(ks.opts.Kinds))
	for i, k := range ks.opts.Kinds {
		known[i] = k.GroupKind().String()
	}
	return Kind{}, fmt.Errorf("%w: %s (known are %s)", ErrUnknownKind, gk, strings.Join(known, ", "))
}

// of returns the kind of a resource. For a resource that is not in Options.Kinds, such as one
// that a kind Holds, it returns a Kind with the default Carrier.
func (ks *kinds) of(resource schema.GroupVersionResource) Kind {
	for _, k := range ks.opts.Kinds {
		if k.Resource.GroupResource() == resource.GroupResource() {
			return k
		}
	}
	return Kind{Resource: resource, Kind: resource.Resource, Namespaced: true}
}

// object validates a caller's object. It returns the object's kind and an unstructured copy
// without the metadata that only a server sets.
func (ks *kinds) object(obj Object) (Kind, *unstructured.Unstructured, error) {
	if argument.Missing(obj) {
		return Kind{}, nil, errObjectNil
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		kinds, _, err := ks.opts.Scheme.ObjectKinds(obj)
		if err != nil {
			return Kind{}, nil, fmt.Errorf("%T is not in Options.Scheme: %w", obj, err)
		}
		gvk = kinds[0]
	}
	kind, err := ks.find(gvk.GroupKind())
	if err != nil {
		return Kind{}, nil, err
	}
	if gvk.Version != kind.Resource.Version {
		return Kind{}, nil, fmt.Errorf("%s is of version %q: Options.Kinds has it as %s", kind.Kind, gvk.Version, kind.Resource.GroupVersion())
	}
	u, ok := obj.(*unstructured.Unstructured)
	if ok {
		u = u.DeepCopy()
	} else {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return Kind{}, nil, fmt.Errorf("%T: %w", obj, err)
		}
		u = &unstructured.Unstructured{Object: raw}
	}
	// A typed object carries fields that only a server sets.
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	u.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(kind.Kind))
	if err := kind.check(objectKey(u)); err != nil {
		return Kind{}, nil, err
	}
	return kind, u, kind.checkOwner(u.GetName())
}
