// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// Declared returns the Kind of the type that a WorkloadType declares. Its shards have the spec of the parent, except for
// the replicas if they are divided. It fails if the declaration has a fault, if it does not divide its type
// (DivideNone), and for the types of Kubernetes: Deployments, StatefulSets and so on return their Kinds.
func Declared(spec v1alpha1.WorkloadTypeSpec) (Kind, error) {
	t, err := workload.Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("splitter: WorkloadType of %s: %w", spec.Resource.Resource, err)
	}
	if err := t.NotBuiltin(); err != nil {
		return nil, fmt.Errorf("splitter: WorkloadType of %s: %w", spec.Resource.Resource, err)
	}
	switch t.Division() {
	case v1alpha1.DivideReplicas:
		return newReplicated(t), nil
	case v1alpha1.DivideEveryCluster:
		return everyCluster{declaration{t}}, nil
	case v1alpha1.DivideOneCluster:
		return oneCluster{declaration{t}}, nil
	}
	return nil, fmt.Errorf("splitter: WorkloadType of %s: its division is None", t.Resource().GroupResource())
}

// declaration is the part of a Kind that the declaration of its type determines.
type declaration struct{ t *workload.Type }

func (k declaration) Resource() schema.GroupVersionResource { return k.t.Resource() }

// Conditions returns the conditions that the declaration permits.
func (k declaration) Conditions() Conditions {
	return Conditions{
		Placed: k.t.Adds(v1alpha1.AddPlaced), Duplicated: k.t.Adds(v1alpha1.AddDuplicated), UpdateTime: k.t.Spec().Status.UpdateTime,
	}
}

// newShard returns a shard with the parent's type and a copy of its spec.
func (k declaration) newShard(parent *unstructured.Unstructured, cluster string) Shard {
	s := newShard(parent, cluster)
	for _, path := range k.t.TemplatePaths() {
		unstructured.RemoveNestedField(s.Object.Object, append(path, "metadata", "creationTimestamp")...) // see newShard
	}
	return s
}

// pods returns how many pods a shard last reported. Without such a report, it returns the shard's desired number; 1 if
// its type has no replicas.
func (k declaration) pods(shard *unstructured.Unstructured) int64 {
	desired := int64(1)
	if path := k.t.Replicas(); path != nil {
		desired = numberOr(shard, 0, path...)
	}
	if path := k.t.Pods(); path != nil {
		return numberOr(shard, desired, path...)
	}
	return desired
}
