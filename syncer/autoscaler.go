// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// autoscaled is the Owner of fields that belong to the upstream, but to an autoscaler downstream while a synced
// HorizontalPodAutoscaler targets the object. Then they are FirstWriter fields.
const autoscaled = FirstWriter + 1

// scaleTarget is an upstream object that a HorizontalPodAutoscaler targets.
type scaleTarget struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// autoscalers records the targets of all synced HorizontalPodAutoscalers.
type autoscalers struct {
	mu      sync.Mutex
	targets map[types.NamespacedName]scaleTarget // by autoscaler
	number  map[scaleTarget]int                  // of autoscalers
}

func newAutoscalers() *autoscalers {
	return &autoscalers{targets: map[types.NamespacedName]scaleTarget{}, number: map[scaleTarget]int{}}
}

// autoscalerType is the name of the controller of HorizontalPodAutoscalers.
const autoscalerType = "horizontalpodautoscalers.autoscaling"

func isAutoscaler(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
}

// set records the target of an autoscaler, whose object is nil if it is gone. It returns the targets for which that
// makes a difference.
func (a *autoscalers) set(autoscaler types.NamespacedName, obj *unstructured.Unstructured) (changed []scaleTarget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, had := a.targets[autoscaler]
	now, has := targetOf(obj)
	if had == has && before == now {
		return nil
	}
	if had {
		delete(a.targets, autoscaler)
		if a.number[before]--; a.number[before] == 0 {
			delete(a.number, before)
			changed = append(changed, before)
		}
	}
	if has {
		a.targets[autoscaler] = now
		if a.number[now]++; a.number[now] == 1 {
			changed = append(changed, now)
		}
	}
	return changed
}

// has reports whether an autoscaler targets the object.
func (a *autoscalers) has(target scaleTarget) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.number[target] > 0
}

// targetOf returns the object that an autoscaler targets.
func targetOf(autoscaler *unstructured.Unstructured) (scaleTarget, bool) {
	if autoscaler == nil {
		return scaleTarget{}, false
	}
	ref, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	version, err := schema.ParseGroupVersion(ref["apiVersion"])
	if err != nil || ref["kind"] == "" || ref["name"] == "" {
		return scaleTarget{}, false
	}
	return scaleTarget{
		schema.GroupKind{Group: version.Group, Kind: ref["kind"]},
		types.NamespacedName{Namespace: autoscaler.GetNamespace(), Name: ref["name"]},
	}, true
}

// autoscaled reports whether an autoscaler downstream sets the replicas of an upstream object. While the cache of
// autoscalers is not fresh, it returns true, since the replicas of an autoscaled object must not be overwritten.
func (s *Syncer) autoscaled(kind schema.GroupKind, key types.NamespacedName) bool {
	s.mu.Lock()
	c := s.controllers[autoscalerType]
	s.mu.Unlock()
	if c != nil && c.kind.Refused == "" && c.caches.staleErr() != nil {
		return true
	}
	return s.autoscalers.has(scaleTarget{kind, key})
}

// scalable reports whether autoscalers may scale the objects of the type.
func (r rules) scalable() bool {
	return slices.ContainsFunc(r, func(one rule) bool { return one.owner == autoscaled })
}

// observeAutoscaler records a change of an autoscaler in the cache, and queues the objects that it affects.
func (c *controller) observeAutoscaler(key types.NamespacedName) {
	obj, _ := c.caches.origin(key)
	for _, target := range c.syncer.autoscalers.set(key, obj) {
		for _, other := range c.syncer.synced() {
			if other.kind.GroupKind() == target.kind {
				other.enqueue(originRef(target.key), true)
			}
		}
	}
}

// enqueueAutoscaled queues the objects of all types that autoscalers may scale, since autoscaled may now return
// another result.
func (c *controller) enqueueAutoscaled() {
	for _, other := range c.syncer.synced() {
		if other.rules.scalable() {
			other.enqueueAll()
		}
	}
}
