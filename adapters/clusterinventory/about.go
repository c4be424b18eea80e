// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// clusterProperty reads a ClusterProperty of the About API in a peer. It returns "" if the peer has none of this name,
// or does not serve the type.
func clusterProperty(ctx context.Context, peer region.API, name string) (string, error) {
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		properties := peer.Dynamic().Resource(schema.GroupVersionResource{Group: "about.k8s.io", Version: version, Resource: "clusterproperties"})
		obj, err := properties.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) { // also if the version is not served
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read ClusterProperty %s: %w", name, err)
		}
		value, _, _ := unstructured.NestedString(obj.Object, "spec", "value")
		return value, nil
	}
	return "", nil
}
