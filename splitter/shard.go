// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// longestName is the greatest length of a shard's name with which the pods of all kinds are valid:
// labels of the pods contain the name and a hash.
const longestName = 52

// ShardName returns the name of a parent's shard for a cluster: PARENT--CLUSTER. If that name is
// too long, or if another parent and cluster could have the same name, ShardName shortens it and
// appends a hash of parent and cluster.
func ShardName(parent, cluster string) string {
	name := parent + "--" + cluster
	if len(name) <= longestName && !strings.Contains(cluster, ".") && strings.Count(name, "--") == 1 &&
		!strings.HasSuffix(parent, "-") && !strings.HasPrefix(cluster, "-") {
		return name
	}
	sum := sha256.Sum256([]byte(parent + "\x00" + cluster))
	hash := hex.EncodeToString(sum[:5])
	name = strings.ReplaceAll(name, ".", "-")
	name = name[:min(len(name), longestName-len(hash)-1)]
	return strings.TrimRight(name, "-") + "-" + hash
}

// dress sets the name, labels and annotations of a shard that a kind has cut.
func (s *Splitter) dress(parent *unstructured.Unstructured, shard Shard) *unstructured.Unstructured {
	obj := shard.Object
	obj.SetName(ShardName(parent.GetName(), shard.Cluster))
	obj.SetNamespace(parent.GetNamespace())
	labels, annotations := inherited(parent.GetLabels()), inherited(parent.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[s.opts.Label] = shard.Cluster
	labels[v1alpha1.ParentLabel] = string(parent.GetUID())
	maps.Copy(annotations, obj.GetAnnotations()) // of the kind
	annotations[v1alpha1.ParentAnnotation] = parent.GetName()
	annotations[v1alpha1.ClusterAnnotation] = shard.Cluster
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	return obj
}

// parentOf returns the name of a shard's parent, empty if the object is not a shard. An object that
// has the label and the annotations of a shard, but not the name of one, is not a shard.
func parentOf(obj *unstructured.Unstructured) string {
	annotations := obj.GetAnnotations()
	parent, cluster := annotations[v1alpha1.ParentAnnotation], annotations[v1alpha1.ClusterAnnotation]
	if obj.GetLabels()[v1alpha1.ParentLabel] == "" || obj.GetName() != ShardName(parent, cluster) {
		return ""
	}
	return parent
}

// clusterOf returns the cluster of a shard.
func clusterOf(shard *unstructured.Unstructured) string {
	return shard.GetAnnotations()[v1alpha1.ClusterAnnotation]
}

// cutFrom reports whether an object is a shard of the given parent, by name and UID.
func cutFrom(shard, parent *unstructured.Unstructured) bool {
	return parent != nil && parentOf(shard) == parent.GetName() && shard.GetLabels()[v1alpha1.ParentLabel] == string(parent.GetUID())
}

// named reports whether an object that has the label of a parent also has the name of one of the
// parent's shards. If a client copies a shard together with its labels, the copy has another name.
func (s *Splitter) named(obj, parent *unstructured.Unstructured) bool {
	return cutFrom(obj, parent) || obj.GetName() == ShardName(parent.GetName(), obj.GetLabels()[s.opts.Label])
}

// divisible reports whether the Splitter divides an object: it is not a shard, it does not belong to
// a ClusterDaemonSet, and no label assigns the object itself to a cluster.
func (s *Splitter) divisible(obj *unstructured.Unstructured) bool {
	for label := range obj.GetLabels() {
		if label == v1alpha1.ParentLabel || label == v1alpha1.ClusterDaemonSetLabel || label == s.opts.Label || strings.HasPrefix(label, syncerv1alpha1.StateLabelPrefix) {
			return false
		}
	}
	return true
}
