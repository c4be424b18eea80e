// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// amounts has amounts of resources: cpu in thousandths, memory and ephemeral storage in KiB, others in whole numbers.
type amounts map[corev1.ResourceName]int64

// most bounds each amount, so that the sum over a million shards does not overflow. It is 4 PiB of memory.
const most = int64(1) << 42

func inKiB(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// amountOf returns the amount of a quantity, rounded up. Amounts are at least zero and at most the constant most.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case name == corev1.ResourceCPU:
		if q.CmpInt64(most/1000) > 0 {
			return most
		}
		return q.MilliValue()
	case q.CmpInt64(most*1024-1023) > 0:
		return most
	case inKiB(name):
		return (q.Value() + 1023) / 1024
	}
	return min(most, q.Value())
}

// capacityOf returns the amounts of a capacity. Memory is rounded down.
func capacityOf(list corev1.ResourceList) amounts {
	all := make(amounts, len(list))
	for name, q := range list {
		all[name] = amountOf(name, q)
		if inKiB(name) && all[name] < most && all[name]*1024 > q.Value() {
			all[name]--
		}
	}
	return all
}

func (a amounts) add(b amounts) {
	for name, n := range b {
		a[name] = min(most, a[name]+n)
	}
}

// raise raises each amount to that of b.
func (a amounts) raise(b amounts) {
	for name, n := range b {
		a[name] = max(a[name], n)
	}
}

// times returns the amounts of n pods.
func (a amounts) times(n int64) amounts {
	all := make(amounts, len(a))
	for name, each := range a {
		switch {
		case n <= 0 || each == 0:
			all[name] = 0
		case each > most/n:
			all[name] = most
		default:
			all[name] = each * n
		}
	}
	return all
}

// podRequest returns the request of one pod of a template, as the scheduler counts it: the sum of the containers, or the
// request of a container that runs before them if that is more. Amounts for the whole pod replace it; overhead adds to it.
func podRequest(template map[string]any) amounts {
	spec, _ := template["spec"].(map[string]any)
	all := amounts{}
	for _, c := range containers(spec, "containers") {
		all.add(containerRequest(c))
	}
	// An init container with the restartPolicy Always is a sidecar: it runs on while later containers run.
	sidecars, start := amounts{}, amounts{}
	for _, c := range containers(spec, "initContainers") {
		request := containerRequest(c)
		if c["restartPolicy"] == string(corev1.ContainerRestartPolicyAlways) {
			all.add(request)
			sidecars.add(request)
			start.raise(sidecars)
			continue
		}
		request.add(sidecars)
		start.raise(request)
	}
	all.raise(start)
	resources, _ := spec["resources"].(map[string]any)
	for name, n := range quantities(resources["limits"]) {
		if _, ok := all[name]; !ok {
			all[name] = n
		}
	}
	maps.Copy(all, quantities(resources["requests"]))
	all.add(quantities(spec["overhead"]))
	all[corev1.ResourcePods] = 1
	return all
}

func containers(spec map[string]any, field string) (all []map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(spec, field)
	items, _ := list.([]any)
	for _, item := range items {
		if c, ok := item.(map[string]any); ok {
			all = append(all, c)
		}
	}
	return all
}

// containerRequest returns what a container requests. API servers set an absent request of a pod to the limit.
func containerRequest(container map[string]any) amounts {
	resources, _ := container["resources"].(map[string]any)
	all := quantities(resources["limits"])
	maps.Copy(all, quantities(resources["requests"]))
	return all
}

// quantities reads a list of resources. A quantity that cannot be read counts as absent, and so does the number of pods.
func quantities(v any) amounts {
	list, _ := v.(map[string]any)
	all := make(amounts, len(list))
	for name, v := range list {
		if name := corev1.ResourceName(name); name != corev1.ResourcePods {
			if q, err := resource.ParseQuantity(strings.TrimSpace(fmt.Sprint(v))); err == nil {
				all[name] = amountOf(name, q)
			}
		}
	}
	return all
}
