// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter/workload"
)

// autoscaled is the Owner of fields that belong to the upstream, but to an autoscaler downstream while a synced object
// scales the object: a HorizontalPodAutoscaler, or one of a declared type. Then they are FirstWriter fields.
const autoscaled = FirstWriter + 1

// scaleTarget is an upstream object that an autoscaler targets.
type scaleTarget struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// autoscalerRef names an autoscaler upstream, or its downstream object. One may exist without the other: an
// upstream that was restored from a backup may lack an autoscaler that still works downstream.
type autoscalerRef struct {
	of         string // the name of its controller
	downstream bool
	key        types.NamespacedName
}

// autoscalers records the targets of all synced autoscalers.
type autoscalers struct {
	types map[string]*workload.Type // whose objects are autoscalers, by the name of their controller

	mu      sync.Mutex
	sources map[string]*controller // of the autoscalers, by name; those of other types are not synced
	unknown map[string]bool        // the types of which it is not known whether both sides serve them
	targets map[autoscalerRef]scaleTarget
	number  map[scaleTarget]int // of autoscalers
}

func newAutoscalers(declared []*workload.Type) *autoscalers {
	a := &autoscalers{
		types: map[string]*workload.Type{}, sources: map[string]*controller{}, unknown: map[string]bool{},
		targets: map[autoscalerRef]scaleTarget{}, number: map[scaleTarget]int{},
	}
	for _, t := range declared {
		if t.Scales() {
			a.types[t.Resource().GroupResource().String()] = t
		}
	}
	return a
}

// typeOf returns the declaration of a type of autoscalers; nil if the type is another one.
func (a *autoscalers) typeOf(gr schema.GroupResource) *workload.Type { return a.types[gr.String()] }

// follow makes c the source of all targets of one type, and drops those of its previous source. If the type is not
// synced, c is nil, and unknown is true if discovery failed, so that the type may be synced later. follow reports
// whether has may now return false for objects for which it returned true.
func (a *autoscalers) follow(of string, c *controller, unknown bool) (fewer bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	unknown = unknown && c == nil
	fewer = a.unknown[of] && !unknown
	a.unknown[of] = unknown
	before := a.sources[of]
	if before == c {
		return fewer
	}
	for ref := range a.targets {
		if ref.of == of {
			a.drop(ref)
		}
	}
	if a.sources[of] = c; c == nil {
		delete(a.sources, of)
	}
	return fewer || before != nil
}

// drop removes the target of an autoscaler. It reports whether no other autoscaler has this target. mu must be held.
func (a *autoscalers) drop(ref autoscalerRef) (last bool) {
	target := a.targets[ref]
	delete(a.targets, ref)
	if a.number[target]--; a.number[target] > 0 {
		return false
	}
	delete(a.number, target)
	return true
}

// set records the target of an autoscaler that c syncs. now is nil if the autoscaler is gone. set returns the targets
// for which that makes a difference.
func (a *autoscalers) set(c *controller, autoscaler autoscalerRef, now *scaleTarget) (changed []scaleTarget) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, had := a.targets[autoscaler]
	if a.sources[autoscaler.of] != c || had == (now != nil) && (!had || before == *now) {
		return nil
	}
	if had && a.drop(autoscaler) {
		changed = append(changed, before)
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
	has := a.number[target] > 0
	for _, unknown := range a.unknown {
		has = has || unknown
	}
	sources := slices.Collect(maps.Values(a.sources))
	a.mu.Unlock()
	return has || slices.ContainsFunc(sources, func(c *controller) bool { return c.kind.Refused == "" && c.caches.staleErr() != nil })
}

// scales returns the upstream key of the object that an autoscaler of this type targets; nil if it targets none, or is
// not synced.
func (c *controller) scales(autoscaler autoscalerRef) *scaleTarget {
	obj, _ := c.caches.origin(autoscaler.key)
	if autoscaler.downstream {
		obj, _ = c.caches.down.Get(autoscaler.key)
	}
	kind, name, ok := c.syncer.autoscalers.typeOf(c.kind.GVR.GroupResource()).ScaleTarget(obj)
	if !ok {
		return nil
	}
	target := scaleTarget{kind, types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}
	switch {
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
	if c.syncer.autoscalers.typeOf(c.kind.GVR.GroupResource()) == nil {
		return
	}
	autoscaler.of = c.name
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
