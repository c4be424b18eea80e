// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// The number of pods that a shard last reported comes from the declared field, and from the desired replicas without one.
func TestPodsOfDeclaredKinds(t *testing.T) {
	resource := v1alpha1.WorkloadResource{Group: "example.org", Version: "v1", Resource: "xs", Kind: "X"}
	shard := Shard{Object: &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"replicas": int64(9), "size": int64(7)}}}}
	for pods, want := range map[v1alpha1.FieldPath]int64{"status.size": 7, "": 2, "status.absent": 2} {
		kind, err := Declared(v1alpha1.WorkloadTypeSpec{Resource: resource, Status: v1alpha1.WorkloadStatusPaths{Available: "status.size", Replicas: pods}})
		require.NoError(t, err)
		require.Equal(t, want, lastReplicas(kind, shard), "%s", pods)
	}
	every, err := Declared(v1alpha1.WorkloadTypeSpec{Resource: resource, Division: v1alpha1.DivideEveryCluster})
	require.NoError(t, err)
	require.EqualValues(t, 1, lastReplicas(every, shard), "a type without replicas")
}
