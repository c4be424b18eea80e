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

// room has the room of all clusters and the parents that use it, so that no two parents get the same room. A parent uses
// in each cluster the greater of two: the observed shard, and the last decision about the parent. So room that a decision
// frees returns when the shard is observed to be smaller or gone. Nothing is stored: after a start, the shards tell.
//
// It does no I/O. The zero value knows no capacity, so nothing is limited. Safe for concurrent use.
type room struct {
	mu           sync.Mutex
	capacities   map[string]amounts // by cluster
	used         map[string]amounts // by cluster: the sum of all reservations
	reservations map[holder]map[string]*reservation
	shards       map[shardID]reservationID
	waiting      map[string]*queue // by cluster: parents that lack room there
	woken        map[holder][]string
}

// holder is a parent: its type is Splitter.kinds[place].
type holder struct {
	place int
	key   types.NamespacedName
}

// String returns the key of a parent in the queue of a Splitter.
func (h holder) String() string { return strconv.Itoa(h.place) + "/" + h.key.String() }

// shardID is the key of a shard, and its type as in holder.
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

// limit is how many replicas of a parent fit in a cluster in all, and the resource that limits them.
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

// amounts returns the room of a reservation.
func (c *reservation) amounts() amounts {
	all := c.observed.each.times(c.observed.replicas)
	all.raise(c.decided.each.times(c.decided.replicas))
	return all
}

// amount returns the room of a reservation in one resource.
func (c *reservation) amount(name corev1.ResourceName) int64 {
	if c == nil {
		return 0
	}
	return max(c.observed.amount(name), c.decided.amount(name))
}

// change changes a reservation, and keeps the sum of its cluster. It returns true if the cluster has more room than before.
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
	each     func() amounts // called only if the version is new
}

// observe records the state of a shard, which read returns. It calls read while it holds the lock, so that no older state
// replaces a newer one. It returns the parents that may fit now.
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

// limit returns the limit in a cluster for the parent that has the reservation there; nil if it has none.
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
	limits   map[string]limit // by which it was made
	lacks    []string         // the clusters that would get more with more room
}

// enter records a decision, which replaces the earlier one about the parent. It returns false if another decision has
// taken room that this one needs: decide again. It also returns the other parents that may fit now.
func (r *room) enter(of holder, d decision) (entered bool, woken []holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.reservations[of]
	for cluster, n := range d.replicas {
		before, known := d.limits[cluster]
		if _, ok := r.capacities[cluster]; !ok || !known || n > before.replicas {
			continue // the Kind keeps replicas above the limit, or it has none
		}
		if n > r.limit(own[cluster], d.each, cluster).replicas {
			return false, nil
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

// forget drops the last decision about a parent: its shards are the only room that it uses.
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

// wake returns the parents that have waited longest for room in a cluster, as many as fit with one more replica each.
// They no longer wait. When one of them is done, the next ones follow: it may not have used the room.
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

// done returns the parents that follow a parent that was woken and has been reconciled.
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
