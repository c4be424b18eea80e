// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// newCopy returns the desired Deployment of a ClusterDaemonSet in a cluster.
func newCopy(set *unstructured.Unstructured, cluster, label string) *unstructured.Unstructured {
	spec := map[string]any{"replicas": replicasOf(set)}
	for _, field := range []string{"selector", "template"} {
		if v, ok, _ := unstructured.NestedFieldCopy(set.Object, "spec", field); ok {
			spec[field] = v
		}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}}
	// With a creationTimestamp of null, each write of the template would count as a change.
	unstructured.RemoveNestedField(obj.Object, "spec", "template", "metadata", "creationTimestamp")
	obj.SetNamespace(set.GetNamespace())
	obj.SetName(splitter.ShardName(set.GetName(), cluster))
	labels, annotations := splitter.Inherited(set.GetLabels()), splitter.Inherited(set.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[label], labels[v1alpha1.ClusterDaemonSetLabel] = cluster, string(set.GetUID())
	annotations[v1alpha1.ParentAnnotation], annotations[v1alpha1.ClusterAnnotation] = set.GetName(), cluster
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	return obj
}

// setOf returns the name of the ClusterDaemonSet that a Deployment belongs to, empty if it belongs to none. A
// Deployment whose name is not the one that its annotations require belongs to none.
func setOf(obj *unstructured.Unstructured) string {
	set, cluster := obj.GetAnnotations()[v1alpha1.ParentAnnotation], clusterOf(obj)
	if obj.GetLabels()[v1alpha1.ClusterDaemonSetLabel] == "" || obj.GetName() != splitter.ShardName(set, cluster) {
		return ""
	}
	return set
}

func clusterOf(copied *unstructured.Unstructured) string {
	return copied.GetAnnotations()[v1alpha1.ClusterAnnotation]
}

// marked reports whether a Deployment has the label of the ClusterDaemonSet.
func marked(obj, set *unstructured.Unstructured) bool {
	return set != nil && obj.GetLabels()[v1alpha1.ClusterDaemonSetLabel] == string(set.GetUID())
}

// carriedOut reports whether the Controller carries out a ClusterDaemonSet: it is not being deleted, and no label
// assigns the ClusterDaemonSet itself to a cluster.
func carriedOut(set *unstructured.Unstructured, clusterLabel string) bool {
	for label := range set.GetLabels() {
		if label == clusterLabel || strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix) {
			return false
		}
	}
	return set.GetDeletionTimestamp() == nil
}

// replicasOf returns the replicas in each cluster.
func replicasOf(set *unstructured.Unstructured) int64 {
	if n, ok := number(set, "spec", "replicasPerCluster"); ok {
		return n
	}
	return 1 // the default
}

// number reads an integer field at path. It returns false if the field is absent or not an integer.
func number(obj *unstructured.Unstructured, path ...string) (int64, bool) {
	if obj == nil {
		return 0, false
	}
	n, ok, err := unstructured.NestedInt64(obj.Object, path...)
	return n, ok && err == nil
}
