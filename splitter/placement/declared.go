// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// compile compiles Options.WorkloadTypes.
func compile(specs []v1alpha1.WorkloadTypeSpec) ([]*declared.Type, error) {
	var list []*declared.Type
	for i, spec := range specs {
		of, err := declared.Compile(spec)
		if err == nil {
			err = of.NotBuiltin()
		}
		if err != nil {
			return nil, fmt.Errorf("placement: Options.WorkloadTypes[%d] (%s): %w", i, spec.Resource.Resource, err)
		}
		list = append(list, of)
	}
	return list, nil
}

// typeOf returns the declaration of a resource in Options.Workloads. For a resource without a
// built-in declaration, it assumes the pod template of a Deployment or a CronJob, and a StatefulSet's spec.serviceName.
func typeOf(gvr schema.GroupVersionResource) *declared.Type {
	if of := declared.BuiltinType(gvr.Resource); of != nil && of.Resource().GroupResource() == gvr.GroupResource() {
		return of
	}
	of, err := declared.Compile(v1alpha1.WorkloadTypeSpec{
		Resource: v1alpha1.WorkloadResource{Group: gvr.Group, Version: "v1", Resource: "workloads", Kind: "Workload"},
		Division: v1alpha1.DivideEveryCluster, Templates: []v1alpha1.FieldPath{"spec.template", "spec.jobTemplate.spec.template"},
		References: []v1alpha1.WorkloadReference{{Path: "spec.serviceName", Resource: services}},
	})
	if err != nil {
		panic(fmt.Sprintf("placement: %v", err)) // impossible: only the group varies, and it is not checked
	}
	return of
}

// stripDeclared returns a func that removes all fields but the metadata and those that the declaration names. Of a shard it
// keeps only the metadata.
func stripDeclared(of *declared.Type) func(*unstructured.Unstructured) {
	roots := of.Roots()
	return func(obj *unstructured.Unstructured) {
		stripMetadata(obj)
		_, isShard := shardOf(obj)
		for field, v := range obj.Object {
			inner, _ := v.(map[string]any)
			switch keep := roots[field]; {
			case field == "apiVersion", field == "kind", field == "metadata":
			case keep == nil || inner == nil || isShard:
				delete(obj.Object, field)
			default:
				for name := range inner {
					if !slices.Contains(keep, name) {
						delete(inner, name)
					}
				}
			}
		}
	}
}
