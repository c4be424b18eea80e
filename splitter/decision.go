// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// decide cuts a parent within the room that other parents leave, and records the decision in s.room. It also returns the
// limits of the clusters.
func (s *Splitter) decide(k *kindState, parent *unstructured.Unstructured, at situation, have []Shard) (plan Plan, want []Shard, limits map[string]limit, err error) {
	kind, ok := k.kind.(Kind)
	if !ok {
		plan, want, err = s.cut(k, parent, at, have)
		return plan, want, nil, err
	}
	of, each := k.holder(loop.KeyOf(parent)), unitOf(kind, parent, have)
	k.observeAll(have)
	for { // repeats if the room has changed meanwhile
		limits = s.room.limits(of, each)
		at.limits = limits
		if plan, want, err = s.cut(k, parent, at, have); err != nil {
			return Plan{}, nil, nil, err
		}
		entered, woken := s.room.enter(of, decision{replicas: decided(kind, parent, plan, want, have), each: each, limits: limits, lacks: lacking(plan, limits)})
		k.wake(woken)
		if entered {
			return plan, want, limits, nil
		}
	}
}

// decided returns the replicas that a parent needs room for in each cluster: those of its next shards. For kinds whose
// replicas move step by step, it is the number in the plan if that is greater.
func decided(kind Kind, parent *unstructured.Unstructured, plan Plan, want, have []Shard) map[string]int64 {
	replicas := map[string]int64{}
	if _, ok := kind.(counting); ok {
		for _, a := range plan.Shards {
			replicas[a.Cluster] = a.Replicas
		}
	}
	_, job := kind.(jobs)
	present := byCluster(have)
	for _, w := range want {
		if had := present[w.Cluster].Object; job && (ended(parent) || had != nil && ended(had)) {
			continue // an ended Job has no pods
		}
		n := replicasOf(kind, w.Object)
		if isWhole(kind, parent, have) {
			n = min(n, 1)
		}
		replicas[w.Cluster] = max(replicas[w.Cluster], n)
	}
	return replicas
}

// lacking returns the clusters that would get more replicas of a parent if they had more room.
func lacking(plan Plan, limits map[string]limit) (names []string) {
	short := plan.Unplaced > 0
	for name, l := range limits {
		limited := func(r Reason) bool { return r.Name == name && r.Limit == LimitCapacity }
		if l.scarce != "" && plan.Replicas(name) >= l.replicas && (short || slices.ContainsFunc(plan.Reasons, limited)) {
			names = append(names, name)
		}
	}
	return names
}

// withinRoom returns a copy of the shares in which no cluster has more capacity than its limit.
func withinRoom(shares []Share, limits map[string]limit) []Share {
	if len(limits) == 0 {
		return shares
	}
	return eachCluster(shares, func(s *Share) {
		if l, ok := limits[s.Name]; ok && l.scarce != "" && (s.Capacity == nil || *s.Capacity > l.replicas) {
			s.Capacity = &l.replicas
		}
	})
}

// forget drops the decision about a parent that is gone or is not divided.
func (k *kindState) forget(parent types.NamespacedName, have []Shard) {
	k.observeAll(have)
	k.wake(k.room.forget(k.holder(parent)))
}

// observeAll records the state of shards in the cache. A reconcile can read a changed shard from the cache before the event
// of this change is handled.
func (k *kindState) observeAll(have []Shard) {
	for _, shard := range have {
		k.observe(loop.KeyOf(shard.Object))
	}
}

// observe records the room that an object uses as a shard. If it is no longer a shard, its room returns.
func (k *kindState) observe(key types.NamespacedName) {
	if kind, ok := k.kind.(Kind); ok {
		k.wake(k.room.observe(shardID(k.holder(key)), func() observation { return k.observation(kind, key) }))
	}
}

// observation returns the room that an object uses as a shard.
func (k *kindState) observation(kind Kind, key types.NamespacedName) observation {
	obj, ok := k.objects.Get(key)
	if !ok || parentOf(obj) == "" {
		return observation{}
	}
	return observation{
		id:      reservationID{k.holder(types.NamespacedName{Namespace: key.Namespace, Name: parentOf(obj)}), clusterOf(obj)},
		version: version{obj.GetUID(), obj.GetGeneration()}, replicas: replicasOf(kind, obj),
		each: func() amounts { return eachOf(kind, obj) },
	}
}

func (k *kindState) holder(key types.NamespacedName) holder { return holder{k.place, key} }

// wake requeues parents for which there may be room now.
func (k *kindState) wake(parents []holder) {
	for _, of := range parents {
		k.queue.Add(of.String())
	}
}

// counted reports whether the room that is left is known: either all types of shards have been listed, or no cluster has a
// known capacity. A type that the API server does not serve has no shards.
func counted(r *room, kinds []*kindState) bool {
	return !r.limited() || !slices.ContainsFunc(kinds, func(k *kindState) bool {
		_, ok := k.kind.(Kind)
		return ok && !k.listed.Load()
	})
}

// flows handles a fresh cache of k: it requeues the parents that depend on k, or all parents if the last type has now been
// listed.
func (s *Splitter) flows(k *kindState) {
	if err := k.objects.Err(); err == nil || apierrors.IsNotFound(err) {
		before := counted(s.room, s.kinds)
		if k.listed.Store(true); !before && counted(s.room, s.kinds) {
			s.Again()
			return
		}
	}
	k.flows()
}
