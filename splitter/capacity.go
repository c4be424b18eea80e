// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// capacity returns the capacity of a cluster without its pods: that in spec.capacity of its SyncTarget, and for all other
// resources that in status.capacity. If spec.pods is above the pods in status.capacity, an autoscaler will add nodes, so
// status.capacity does not count.
func capacity(target *unstructured.Unstructured) corev1.ResourceList {
	all := resourceList(target, "status", "capacity")
	now, known := all[corev1.ResourcePods]
	if n, ok := number(target, "spec", "pods"); ok && known && now.CmpInt64(n) < 0 {
		all = corev1.ResourceList{}
	}
	maps.Copy(all, resourceList(target, "spec", "capacity"))
	delete(all, corev1.ResourcePods)
	if len(all) == 0 {
		return nil
	}
	return all
}

// resourceList reads amounts of resources. An amount that cannot be read, or is negative, counts as absent.
func resourceList(obj *unstructured.Unstructured, path ...string) corev1.ResourceList {
	v, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
	fields, _ := v.(map[string]any)
	all := make(corev1.ResourceList, len(fields))
	for name, v := range fields {
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); err == nil && q.Sign() >= 0 { // a number or a string
			all[corev1.ResourceName(name)] = q
		}
	}
	return all
}

func sameCapacity(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}

// capacities returns the known capacities of clusters, by name.
func capacities(list []Cluster) map[string]amounts {
	all := map[string]amounts{}
	for _, c := range list {
		of := capacityOf(c.Capacity)
		if c.Pods != nil {
			of[corev1.ResourcePods] = *c.Pods
		}
		if len(of) > 0 {
			all[c.Name] = of
		}
	}
	return all
}
