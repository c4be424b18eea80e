// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// room has the capacity of all clusters and the parents that use it, so that no two parents get the same room. In each
// cluster a parent uses the greater of two numbers: that of the observed shard, and that of the last decision about the
// parent. So the room of removed replicas returns when the shard is observed to be smaller or gone.
//
// Nothing is stored: after a start, the room is computed from the shards. room does no I/O. The zero value knows no
// capacity, so it limits nothing. It is safe for concurrent use.
type room struct {
	mu           sync.Mutex
	capacities   map[string]amounts // by cluster
	used         map[string]amounts // by cluster: the sum of all reservations
	reservations map[holder]map[string]*reservation
	shards       map[shardID]reservationID
	waiting      map[string]*queue   // by cluster: parents that lack room there
	woken        map[holder][]string // clusters for whose room a parent was woken and not reconciled yet
}

// holder identifies a parent: the index of its type in Splitter.kinds, and its key.
type holder struct {
	place int
	key   types.NamespacedName
}

// String returns the key of a parent in the queue of a Splitter.
func (h holder) String() string { return strconv.Itoa(h.place) + "/" + h.key.String() }

// shardID identifies a shard in the same way.
type shardID holder

type reservationID struct {
	of      holder
	cluster string
}

// reservation is the room of one parent in one cluster.
type reservation struct {
	observed, decided use
	of                version // of the observed shard
}

// version identifies the spec of an object.
type version struct {
	uid        types.UID
	generation int64
}

// limit is the greatest number of replicas of a parent in a cluster, and the resource that limits it.
type limit struct {
	replicas int64
	scarce   corev1.ResourceName
}

// setCapacities replaces the capacities. A cluster that is not listed, or has no capacity, limits nothing.
func (r *room) setCapacities(of map[string]amounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.capacities = of
}

// limited reports whether the capacity of any cluster is known.
func (r *room) limited() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.capacities) > 0
}

// amounts returns the room that a reservation takes.
func (c *reservation) amounts() amounts {
	all := c.observed.each.times(c.observed.replicas)
	all.raise(c.decided.each.times(c.decided.replicas))
	return all
}

// amount returns how much of one resource a reservation takes.
func (c *reservation) amount(name corev1.ResourceName) int64 {
	if c == nil {
		return 0
	}
	return max(c.observed.amount(name), c.decided.amount(name))
}

// change changes a reservation and updates the sum of its cluster. It returns true if the cluster has more room than before.
func (r *room) change(id reservationID, f func(*reservation)) (freed bool) {
	in := r.reservations[id.of]
	if in == nil {
		if r.reservations == nil {
			r.reservations, r.used = map[holder]map[string]*reservation{}, map[string]amounts{}
		}
		in = map[string]*reservation{}
		r.reservations[id.of] = in
	}
	c := in[id.cluster]
	if c == nil {
		c = &reservation{}
		in[id.cluster] = c
	}
	before := c.amounts()
	f(c)
	after := c.amounts()
	total := r.used[id.cluster]
	if total == nil {
		total = amounts{}
		r.used[id.cluster] = total
	}
	for name, n := range after {
		total[name] += n
	}
	for name, n := range before {
		total[name] -= n
		freed = freed || n > after[name]
	}
	if maps.DeleteFunc(total, func(_ corev1.ResourceName, n int64) bool { return n == 0 }); len(total) == 0 {
		delete(r.used, id.cluster)
	}
	if c.observed.replicas == 0 && c.decided.replicas == 0 {
		delete(in, id.cluster)
		if len(in) == 0 {
			delete(r.reservations, id.of)
		}
	}
	return freed
}

// observation is the state of a shard. The zero value is that of an object that is no shard, or does not exist.
type observation struct {
	id       reservationID
	version  version
	replicas int64
	each     func() amounts // the request of one replica; called only if the version is new
}

// observe records the state of a shard, which read returns. It calls read while it holds the lock, so that no older state
// replaces a newer one. It returns the waiting parents for which there may be room now.
func (r *room) observe(shard shardID, read func() observation) (woken []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := read()
	before, known := r.shards[shard]
	if known && before != now.id {
		if r.change(before, func(c *reservation) { c.observed, c.of = use{}, version{} }) {
			woken = r.wake(before.cluster)
		}
		delete(r.shards, shard)
	}
	if now.id == (reservationID{}) {
		return woken
	}
	if r.shards == nil {
		r.shards = map[shardID]reservationID{}
	}
	r.shards[shard] = now.id
	sameSpec := false
	if c := r.reservations[now.id.of][now.id.cluster]; c != nil {
		sameSpec = c.observed.each != nil && c.of == now.version && now.version.generation > 0
		if sameSpec && c.observed.replicas == now.replicas {
			return woken
		}
	}
	freed := r.change(now.id, func(c *reservation) {
		c.observed.replicas, c.of = now.replicas, now.version
		if !sameSpec {
			c.observed.each = now.each()
		}
		if maps.Equal(c.observed.each, c.decided.each) {
			c.observed.each = c.decided.each // to save memory
		}
	})
	if freed {
		woken = append(woken, r.wake(now.id.cluster)...)
	}
	return woken
}

// limits returns how many replicas of a parent fit in each cluster whose capacity is known, where each requests the
// given amounts. The present replicas always fit.
func (r *room) limits(of holder, each amounts) map[string]limit {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, own := make(map[string]limit, len(r.capacities)), r.reservations[of]
	for cluster := range r.capacities {
		all[cluster] = r.limit(own[cluster], each, cluster)
	}
	return all
}

// limit returns the limit of a parent in a cluster. c is the reservation of the parent there, nil if it has none.
func (r *room) limit(c *reservation, each amounts, cluster string) limit {
	l, used := limit{replicas: math.MaxInt64}, r.used[cluster]
	for name, capacity := range r.capacities[cluster] {
		if n := each[name]; n > 0 {
			fit := max(0, capacity-used[name]+c.amount(name)) / n
			if fit < l.replicas || fit == l.replicas && name < l.scarce {
				l = limit{fit, name}
			}
		}
	}
	if c != nil {
		l.replicas = max(l.replicas, c.observed.replicas)
	}
	return l
}

// decision is the number of replicas that a parent shall have in each cluster.
type decision struct {
	replicas map[string]int64
	each     amounts
	limits   map[string]limit // the limits within which the decision was made
	lacks    []string         // clusters that would get more replicas if they had more room
}

// enter records a decision, which replaces the earlier one about the parent. It returns false and records nothing if the
// decision needs room that another one has taken, or lacks room that is free now: then decide again. It also returns the waiting parents for which there may be
// room now.
func (r *room) enter(of holder, d decision) (entered bool, woken []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.reservations[of]
	for cluster, n := range d.replicas {
		before, known := d.limits[cluster]
		if _, ok := r.capacities[cluster]; !ok || !known || n > before.replicas {
			continue // the Kind keeps replicas above the limit, or the cluster has no limit
		}
		if n > r.limit(own[cluster], d.each, cluster).replicas {
			return false, nil
		}
	}
	for _, cluster := range d.lacks {
		if r.limit(own[cluster], d.each, cluster).replicas > d.limits[cluster].replicas {
			return false, nil // wake did not find the parent, which does not wait yet
		}
	}
	for _, cluster := range d.lacks {
		if r.waiting == nil {
			r.waiting = map[string]*queue{}
		}
		if r.waiting[cluster] == nil {
			r.waiting[cluster] = newQueue()
		}
		r.waiting[cluster].add(of, d.each)
	}
	return true, r.decide(of, d)
}

// forget drops the last decision about a parent. From then on the parent uses only the room of its shards.
func (r *room) forget(of holder) (woken []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.decide(of, decision{})
}

func (r *room) decide(of holder, d decision) (woken []holder) {
	var freed []string
	set := func(cluster string, to use) {
		if r.change(reservationID{of, cluster}, func(c *reservation) { c.decided = to }) {
			freed = append(freed, cluster)
		}
	}
	own := r.reservations[of]
	for cluster, c := range own {
		if d.replicas[cluster] == 0 && c.decided.replicas > 0 {
			set(cluster, use{})
		}
	}
	for cluster, n := range d.replicas {
		if c := own[cluster]; n > 0 && (c == nil || c.decided.replicas != n || !maps.Equal(c.decided.each, d.each)) {
			set(cluster, use{n, d.each})
		}
	}
	for cluster, q := range r.waiting {
		if !slices.Contains(d.lacks, cluster) {
			q.remove(of)
		}
		if q.empty() {
			delete(r.waiting, cluster)
		}
	}
	for _, cluster := range freed {
		woken = append(woken, r.wake(cluster)...)
	}
	return woken
}

// wake removes parents from the queue of a cluster and returns them: in the order in which they began to wait, as many as
// fit with one more replica each. When such a parent is reconciled, done wakes the next ones: it may not have used the room.
func (r *room) wake(cluster string) (woken []holder) {
	q := r.waiting[cluster]
	if q == nil {
		return nil
	}
	free := amounts{}
	for name, n := range r.capacities[cluster] {
		free[name] = n - r.used[cluster][name]
	}
	for of, each := range q.all() {
		fits := true
		for name, n := range each {
			left, ok := free[name]
			fits = fits && (!ok || n <= left)
		}
		if !fits {
			continue
		}
		for name, n := range each {
			if _, ok := free[name]; ok {
				free[name] -= n
			}
		}
		q.remove(of)
		if r.woken == nil {
			r.woken = map[holder][]string{}
		}
		r.woken[of] = append(r.woken[of], cluster)
		woken = append(woken, of)
	}
	return woken
}

// done returns the parents that are woken after a woken parent has been reconciled.
func (r *room) done(of holder) (woken []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clusters := r.woken[of]
	delete(r.woken, of)
	for _, cluster := range clusters {
		woken = append(woken, r.wake(cluster)...)
	}
	return woken
}
