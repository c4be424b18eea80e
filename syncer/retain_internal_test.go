// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The rules of an aggregated ClusterRole belong to the cluster; those of another ClusterRole go down.
func TestRulesOfClusterRoles(t *testing.T) {
	kind := schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	for name, test := range map[string]struct {
		role map[string]any
		down bool
	}{
		"plain":                {map[string]any{"rules": []any{"r"}}, true},
		"aggregated":           {map[string]any{"rules": []any{"r"}, "aggregationRule": map[string]any{"clusterRoleSelectors": []any{}}}, false},
		"aggregated, no rules": {map[string]any{"rules": nil, "aggregationRule": map[string]any{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: test.role}
			rules{}.apply(kind, obj, func(rule) bool { return false })
			require.Equal(t, test.down, obj.Object["rules"] != nil)
			_, aggregated := test.role["aggregationRule"]
			require.Equal(t, !test.down, aggregated, "the aggregation itself goes down")
		})
	}
}

// Of the annotations about volumes, those that users set go down, and those of controllers do not.
func TestAnnotationsOfVolumes(t *testing.T) {
	for key, down := range map[string]bool{
		"volume.beta.kubernetes.io/storage-class":       true,
		"volume.beta.kubernetes.io/mount-options":       true,
		"volume.beta.kubernetes.io/storage-provisioner": false,
		"volume.kubernetes.io/storage-provisioner":      false,
		"volume.kubernetes.io/selected-node":            false,
		"pv.kubernetes.io/bind-completed":               false,
	} {
		_, kept := synced(map[string]string{key: "x"}, "label")[key]
		require.Equal(t, down, kept, key)
	}
}
