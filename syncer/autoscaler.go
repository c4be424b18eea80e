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

// autoscalerRef names a HorizontalPodAutoscaler upstream, or its downstream object. One may exist without the other: an
// upstream that was restored from a backup may lack an autoscaler that still works downstream.
type autoscalerRef struct {
	downstream bool
	key        types.NamespacedName
}

// autoscalers records the targets of all synced HorizontalPodAutoscalers.
type autoscalers struct {
	mu      sync.Mutex
	source  *controller // of the autoscalers; nil: they are not synced
	unknown bool        // it is not known whether both sides serve the type
	targets map[autoscalerRef]scaleTarget
	number  map[scaleTarget]int // of autoscalers
}

// autoscalerType is the name of the controller of HorizontalPodAutoscalers.
const autoscalerType = "horizontalpodautoscalers.autoscaling"

func isAutoscaler(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
}

// follow makes c the source of all targets, and drops those of the previous source. If the type is not synced, c is
// nil, and unknown is true if discovery failed, so that the type may be synced later. follow reports whether has may
// now return false for objects for which it returned true.
func (a *autoscalers) follow(c *controller, unknown bool) (fewer bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	unknown = unknown && c == nil
	fewer = a.unknown && !unknown
	a.unknown = unknown
	if a.source != c {
		fewer = fewer || a.source != nil
		a.source, a.targets, a.number = c, map[autoscalerRef]scaleTarget{}, map[scaleTarget]int{}
	}
	return fewer
}

// set records the target of an autoscaler that c syncs. now is nil if the autoscaler is gone. set returns the targets
// for which that makes a difference.
func (a *autoscalers) set(c *controller, autoscaler autoscalerRef, now *scaleTarget) (changed []scaleTarget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, had := a.targets[autoscaler]
	if a.source != c || had == (now != nil) && (!had || before == *now) {
		return nil
	}
	if had {
		delete(a.targets, autoscaler)
		if a.number[before]--; a.number[before] == 0 {
			delete(a.number, before)
			changed = append(changed, before)
		}
	}
	if now != nil {
		a.targets[autoscaler] = *now
		if a.number[*now]++; a.number[*now] == 1 {
			changed = append(changed, *now)
		}
	}
	return changed
}

// has reports whether an autoscaler targets the object. While the autoscalers are not known, it returns true, since the
// replicas of an autoscaled object must not be overwritten.
func (a *autoscalers) has(target scaleTarget) bool {
	a.mu.Lock()
	source, has := a.source, a.unknown || a.number[target] > 0
	a.mu.Unlock()
	return has || source != nil && source.kind.Refused == "" && source.caches.staleErr() != nil
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

// scales returns the upstream key of the object that an autoscaler of this type targets; nil if it targets none, or is
// not synced.
func (c *controller) scales(autoscaler autoscalerRef) *scaleTarget {
	obj, _ := c.caches.origin(autoscaler.key)
	if autoscaler.downstream {
		obj, _ = c.caches.down.Get(autoscaler.key)
	}
	target, ok := targetOf(obj)
	switch {
	case !ok:
		return nil
	case autoscaler.downstream:
		if target.key, ok = c.originAt(target.key); !ok {
			return nil
		}
	default:
		place, err := c.placeOf(autoscaler.key)
		if reason, _ := c.refuses(autoscaler.key, place, obj); err != nil || reason != "" {
			return nil
		}
	}
	return &target
}

// scalable reports whether autoscalers may scale the objects of the type.
func (r rules) scalable() bool {
	return slices.ContainsFunc(r, func(one rule) bool { return one.owner == autoscaled })
}

// observeAutoscaler records a change of an autoscaler in a cache, and queues the objects that it affects.
func (c *controller) observeAutoscaler(autoscaler autoscalerRef) {
	if !isAutoscaler(c.kind.GroupKind()) {
		return
	}
	for _, target := range c.syncer.autoscalers.set(c, autoscaler, c.scales(autoscaler)) {
		for _, other := range c.syncer.synced() {
			if other.kind.GroupKind() == target.kind {
				other.enqueue(originRef(target.key), true)
			}
		}
	}
}

// enqueueAutoscaled queues the objects of all types that autoscalers may scale, since it has become known which objects
// they target.
func (s *Syncer) enqueueAutoscaled() {
	for _, c := range s.synced() {
		if c.rules.scalable() {
			c.enqueueAll()
		}
	}
}
