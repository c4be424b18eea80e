// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	wal "github.com/atoll-dev/atoll/wal/v1alpha1"
)

// GroupName is the API group of this package.
const GroupName = wal.GroupName

// GroupVersion is the group and version of this package's types.
var GroupVersion = wal.GroupVersion

// Resource returns resource within this package's group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// AddToScheme adds the types of the group, with Operation of package wal/v1alpha1, to a scheme. It
// is idempotent.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &PeerSet{}, &PeerSetList{})
	return wal.AddToScheme(scheme)
}
