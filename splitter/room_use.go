// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// use is the room that a parent or shard uses: a number of replicas, and what each of them requests.
type use struct {
	replicas int64
	each     amounts
}

// amount returns the room in one resource.
func (u use) amount(name corev1.ResourceName) int64 {
	each := u.each[name]
	if u.replicas > 0 && each > most/u.replicas {
		return most
	}
	return max(0, each*u.replicas)
}

// consuming is a Kind that knows how much room its parents and shards use. For other Kinds, spec.replicas and spec.template
// count.
type consuming interface {
	// replicasOf returns how many replicas of a parent or shard use room.
	replicasOf(obj *unstructured.Unstructured) int64
	// eachOf returns the request of one of these replicas. It depends on the spec only.
	eachOf(obj *unstructured.Unstructured) amounts
}

func replicasOf(kind divider, obj *unstructured.Unstructured) int64 {
	if k, ok := kind.(consuming); ok {
		return max(0, k.replicasOf(obj))
	}
	return max(0, numberOr(obj, 1, "spec", "replicas"))
}

func eachOf(kind divider, obj *unstructured.Unstructured) amounts {
	if k, ok := kind.(consuming); ok {
		return k.eachOf(obj)
	}
	return podRequest(template(obj))
}

// unitOf returns the request of one replica of a parent, as Kind.Cut counts replicas.
func unitOf(kind divider, parent *unstructured.Unstructured, have []Shard) amounts {
	each := eachOf(kind, parent)
	if isWhole(kind, parent, have) {
		return each.times(max(1, replicasOf(kind, parent)))
	}
	return each
}

// isWhole reports whether a parent is an Indexed Job that is not divided: all its pods count as one replica.
func isWhole(kind divider, parent *unstructured.Unstructured, have []Shard) bool {
	if _, ok := kind.(jobs); !ok || !indexed(parent) {
		return false
	}
	divides, _ := dividesIndexes(parent, have)
	return !divides
}

// eachOf returns the sum of one pod of each template: types do not declare how many pods of a template a replica has.
func (k declaration) eachOf(obj *unstructured.Unstructured) amounts {
	all := amounts{}
	for _, t := range k.t.Templates(obj) {
		all.add(podRequest(t))
	}
	all[corev1.ResourcePods] = max(1, all[corev1.ResourcePods])
	return all
}

// replicasOf returns the desired replicas, one for a type without a field for them.
func (k declaration) replicasOf(obj *unstructured.Unstructured) int64 {
	if path := k.t.Replicas(); path != nil {
		return numberOr(obj, 1, path...)
	}
	return 1
}

// replicasOf returns how many pods a shard last reported: their number depends on the nodes.
func (k everyCluster) replicasOf(obj *unstructured.Unstructured) int64 { return k.pods(obj) }

// replicasOf returns the parallelism, zero for a Job that has ended. A suspended Job keeps its room.
func (k jobs) replicasOf(obj *unstructured.Unstructured) int64 {
	if ended(obj) {
		return 0
	}
	return k.declaration.replicasOf(obj)
}

// eachOf returns the request of the pods that run at the same time; of one Job, if the type is a CronJob.
func (k oneCluster) eachOf(obj *unstructured.Unstructured) amounts {
	return k.declaration.eachOf(obj).times(max(1, numberOr(obj, 1, "spec", "jobTemplate", "spec", "parallelism")))
}
