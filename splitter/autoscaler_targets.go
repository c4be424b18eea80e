// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// targets remembers which workload each autoscaler targets. When an autoscaler is deleted or gets another target, the
// previous workload must be requeued, and the cached autoscaler no longer names it.
type targets struct {
	mu sync.Mutex
	of map[types.NamespacedName]string
}

func newTargets() *targets { return &targets{of: map[types.NamespacedName]string{}} }

// set records the target of an autoscaler, empty if it is gone, and returns the previous one.
func (t *targets) set(autoscaler types.NamespacedName, target string) (before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.of[autoscaler]
	if target == "" {
		delete(t.of, autoscaler)
	} else {
		t.of[autoscaler] = target
	}
	return before
}

func (t *targets) get(autoscaler types.NamespacedName) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[autoscaler]
}

// requeueScaled requeues the workload that an autoscaler targets, after a change of the autoscaler or of a part of it. key
// is the key of the changed object. If that object is or was a part, parent is the name of its autoscaler.
func (k *kindState) requeueScaled(key types.NamespacedName, parent string, obj *unstructured.Unstructured) {
	if k.targets == nil {
		return
	}
	names := map[string]bool{}
	if parent != "" {
		names[k.targets.get(types.NamespacedName{Namespace: key.Namespace, Name: parent})] = true
	} else {
		target := ""
		if obj != nil {
			target, _, _ = unstructured.NestedString(obj.Object, "spec", "scaleTargetRef", "name")
		}
		names[k.targets.set(key, target)], names[target] = true, true
	}
	for name := range names {
		at := types.NamespacedName{Namespace: key.Namespace, Name: name}
		for _, other := range k.scaled {
			if _, ok := other.objects.Get(at); ok {
				other.requeue(at) // this also requeues other autoscalers that target it
			}
		}
	}
}
