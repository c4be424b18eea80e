// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "splitter.atoll.dev"

// GroupVersion is the group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource returns resource within this package's group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme adds this package's types to a scheme. It is idempotent.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterDaemonSet{}, &ClusterDaemonSetList{},
		&PlacementPolicy{}, &PlacementPolicyList{},
		&WorkloadType{}, &WorkloadTypeList{},
		&ClusterPlacementPolicy{}, &ClusterPlacementPolicyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
