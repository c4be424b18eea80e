// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Apply applies manifests (YAML or JSON, one or several documents) as the
// administrator, by server-side apply with force, in their order. Objects
// without a namespace go into "default". It returns when every
// CustomResourceDefinition among them is served, so that objects of the
// new kinds may follow in the same manifests. It is idempotent.
func (p *Plane) Apply(ctx context.Context, manifests []byte) error {
	objects, err := parse(manifests)
	if err != nil {
		return fmt.Errorf("%s: apply: %w", p.name, err)
	}
	client, err := p.api()
	if err != nil {
		return err
	}
	described, err := discovery.NewDiscoveryClientForConfigAndClient(p.Config(), p.client)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(described))
	for _, object := range objects {
		if err := apply(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("%s: apply %s %s: %w", p.name, object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func apply(ctx context.Context, client dynamic.Interface, mapper meta.ResettableRESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "atoll-e2e", Force: true})
	if err != nil || mapping.Resource != definitions {
		return err
	}
	return awaitServed(ctx, client, mapper, object.GetName())
}

// awaitServed waits until a definition is established and discovery lists its kind. Discovery lists
// the kind a moment after the definition is established.
func awaitServed(ctx context.Context, client dynamic.Interface, mapper meta.ResettableRESTMapper, name string) error {
	return await(ctx, "it to be served", func(ctx context.Context) error {
		object, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); !established(conditions) {
			return fmt.Errorf("its conditions are %v", conditions)
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		mapper.Reset()
		_, err = mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		return err
	})
}

func established(conditions []any) bool {
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Established" && condition["status"] == "True"
	})
}

// parse returns the objects of manifests, with the items of lists as objects.
func parse(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	var objects []*unstructured.Unstructured
	for {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		if len(content) == 0 {
			continue
		}
		object := &unstructured.Unstructured{Object: content}
		if object.GetKind() == "" {
			return nil, fmt.Errorf("document %d: it has no kind", len(objects)+1)
		}
		if !object.IsList() {
			objects = append(objects, object)
			continue
		}
		err := object.EachListItem(func(item runtime.Object) error {
			objects = append(objects, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
	}
}
