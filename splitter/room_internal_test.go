// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// roomWorld simulates a Splitter: an API server with shards, a cache that shows writes late, and workers that decide about
// the queued parents. Only the room, the parents' own events and changed clusters queue a parent.
type roomWorld struct {
	t       *rapid.T
	room    *room
	caps    map[string]amounts
	parents map[string]*roomParent
	queue   []string
	whole   bool // each decision is carried out at once, and moves nothing for balance
}

type roomParent struct {
	replicas, moves int64
	each            amounts
	gone            bool
	server, cache   map[string]use // shards by cluster
	target          map[string]int64
	writes          []roomWrite
	missing         int64
}

type roomWrite struct {
	cluster string
	to      use
}

func (w *roomWorld) holder(name string) holder {
	return holder{key: types.NamespacedName{Namespace: "default", Name: name}}
}

func (w *roomWorld) add(names ...string) {
	for _, name := range names {
		if !slices.Contains(w.queue, name) {
			w.queue = append(w.queue, name)
		}
	}
}

func (w *roomWorld) wake(woken []holder) {
	for _, of := range woken {
		w.add(of.key.Name)
	}
}

// show lets the cache show the shard of a parent.
func (w *roomWorld) show(name, cluster string) {
	p := w.parents[name]
	shard := shardID(w.holder(ShardName(name, cluster)))
	w.wake(w.room.observe(shard, func() observation {
		if is, ok := p.server[cluster]; ok {
			p.cache[cluster] = is
			return observation{id: reservationID{w.holder(name), cluster}, replicas: is.replicas, each: func() amounts { return is.each }}
		}
		delete(p.cache, cluster)
		return observation{}
	}))
	w.add(name)
}

// write carries out the next write of a parent.
func (w *roomWorld) write(name string) {
	p := w.parents[name]
	next := p.writes[0]
	p.writes = p.writes[1:]
	p.server[next.cluster] = next.to
	if next.to.replicas == 0 {
		delete(p.server, next.cluster)
	}
}

func (p *roomParent) unseen() bool {
	return len(p.writes) > 0 || !maps.EqualFunc(p.server, p.cache, func(a, b use) bool { return a.replicas == b.replicas && maps.Equal(a.each, b.each) })
}

// reconcile reconciles the first queued parent.
func (w *roomWorld) reconcile() {
	name := w.queue[0]
	w.queue = w.queue[1:]
	p, of := w.parents[name], w.holder(name)
	defer func() { w.wake(w.room.done(of)) }()
	switch {
	case p.unseen():
	case p.gone:
		w.wake(w.room.forget(of))
		p.target = nil
		for _, cluster := range slices.Sorted(maps.Keys(p.server)) {
			p.writes = append(p.writes, roomWrite{cluster: cluster})
		}
	default:
		w.decide(name, w.plan(name))
	}
}

type roomPlan struct {
	Plan
	limits map[string]limit
}

func (w *roomWorld) plan(name string) roomPlan {
	p := w.parents[name]
	limits := w.room.limits(w.holder(name), p.each)
	var shares []Share
	for _, cluster := range slices.Sorted(maps.Keys(w.caps)) {
		shares = append(shares, Share{Name: cluster})
	}
	present := map[string]int64{}
	for cluster, is := range p.cache {
		present[cluster] = is.replicas
	}
	d := Demand{Replicas: p.replicas, UID: types.UID(name), Moves: p.moves}
	plan, err := Divide(d, withPresent(withinRoom(shares, limits), present))
	require.NoError(w.t, err)
	return roomPlan{plan, limits}
}

// decide enters a plan, and checks that the new replicas fit beside all shards and decisions.
func (w *roomWorld) decide(name string, plan roomPlan) (entered bool) {
	p := w.parents[name]
	target, next := map[string]int64{}, map[string]int64{}
	for _, a := range plan.Shards {
		was := p.server[a.Cluster].replicas
		next[a.Cluster] = a.Replicas
		if !w.whole && was != a.Replicas {
			next[a.Cluster] = rapid.Int64Range(min(was, a.Replicas), max(was, a.Replicas)).Draw(w.t, "step")
			w.add(name) // available replicas permit the next step
		}
		target[a.Cluster] = max(a.Replicas, next[a.Cluster])
	}
	entered, woken := w.room.enter(w.holder(name), decision{replicas: target, each: p.each, limits: plan.limits, lacks: lacking(plan.Plan, plan.limits)})
	w.wake(woken)
	if !entered {
		w.add(name)
		return false
	}
	p.target, p.missing = target, plan.Unplaced
	for cluster, n := range target {
		if n > p.server[cluster].replicas {
			w.fits(name, cluster)
		}
		if is, to := p.server[cluster], next[cluster]; is.replicas != to || to > 0 && !maps.Equal(is.each, p.each) {
			p.writes = append(p.writes, roomWrite{cluster, use{to, p.each}})
		}
	}
	return true
}

// used returns the room that shards, decisions and writes on the way use, without those of one parent.
func (w *roomWorld) used(cluster, except string) amounts {
	sum := amounts{}
	for name, p := range w.parents {
		if name == except {
			continue
		}
		all := p.server[cluster].each.times(p.server[cluster].replicas)
		all.raise(p.each.times(p.target[cluster]))
		for _, next := range p.writes {
			if next.cluster == cluster {
				all.raise(next.to.each.times(next.to.replicas))
			}
		}
		sum.add(all)
	}
	return sum
}

// fits checks that the decision about a parent fits in a cluster beside all others.
func (w *roomWorld) fits(name, cluster string) {
	p, used := w.parents[name], w.used(cluster, name)
	for resource, n := range p.each.times(p.target[cluster]) {
		if has, ok := w.caps[cluster][resource]; ok {
			require.LessOrEqual(w.t, used[resource]+n, has, "%s in %s", resource, cluster)
		}
	}
}

func (w *roomWorld) drawAmounts(most int64, absent bool) amounts {
	a := amounts{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods"} {
		if n := rapid.Int64Range(1, most).Draw(w.t, string(name)); !absent || n%4 != 0 {
			a[name] = n
		}
	}
	return a
}

func (w *roomWorld) act() {
	names := slices.Sorted(maps.Keys(w.parents))
	draw := func() string { return rapid.SampledFrom(names).Draw(w.t, "parent") }
	switch rapid.SampledFrom([]string{"reconcile", "reconcile", "reconcile", "race", "write", "write", "show", "show", "new", "scale", "template", "delete", "capacity", "restart"}).Draw(w.t, "act") {
	case "reconcile":
		if len(w.queue) > 0 {
			w.reconcile()
		}
	case "race": // two workers plan at the same time, then enter
		a, b := draw(), draw()
		if a == b || slices.ContainsFunc([]string{a, b}, func(n string) bool { return w.parents[n].gone || w.parents[n].unseen() }) {
			return
		}
		x, y := w.plan(a), w.plan(b)
		w.decide(a, x)
		w.decide(b, y)
	case "write":
		if name := draw(); len(w.parents[name].writes) > 0 {
			w.write(name)
		}
	case "show":
		name := draw()
		w.show(name, rapid.SampledFrom(slices.Sorted(maps.Keys(w.caps))).Draw(w.t, "cluster"))
	case "new":
		if len(names) < 8 {
			w.parent(fmt.Sprintf("p%d", len(names)))
		}
	case "scale":
		name := draw()
		w.parents[name].replicas = rapid.Int64Range(0, 9).Draw(w.t, "replicas")
		w.add(name)
	case "template":
		if name := draw(); !w.parents[name].unseen() && w.parents[name].target == nil {
			w.parents[name].each = w.drawAmounts(5, false) // before the first decision: a new template raises the use of present replicas
		}
	case "delete":
		name := draw()
		w.parents[name].gone = true
		w.add(name)
	case "capacity":
		cluster := rapid.SampledFrom(slices.Sorted(maps.Keys(w.caps))).Draw(w.t, "cluster")
		w.caps = maps.Clone(w.caps)
		w.caps[cluster] = w.drawAmounts(20, true)
		w.room.setCapacities(w.caps)
		w.add(names...)
	case "restart":
		w.restart()
	}
}

// restart lets the process die: writes that it has not sent are lost, and the next process knows only the shards.
func (w *roomWorld) restart() {
	w.room, w.queue = &room{}, nil
	w.room.setCapacities(w.caps)
	for name, p := range w.parents {
		p.writes, p.target, p.cache = nil, nil, map[string]use{}
		for cluster := range w.caps {
			w.show(name, cluster)
		}
	}
	slices.Sort(w.queue)
}

func (w *roomWorld) parent(name string) {
	w.parents[name] = &roomParent{
		replicas: rapid.Int64Range(0, 9).Draw(w.t, "replicas"), moves: rapid.Int64Range(0, 2).Draw(w.t, "moves"),
		each: w.drawAmounts(5, false), server: map[string]use{}, cache: map[string]use{},
	}
	w.add(name)
}

// rest carries out all writes, shows them, and reconciles all queued parents until none is left.
func (w *roomWorld) rest() {
	w.whole = true
	for _, p := range w.parents {
		p.moves = 0
	}
	for range 10_000 {
		for name, p := range w.parents {
			for len(p.writes) > 0 {
				w.write(name)
			}
			for cluster := range w.caps {
				if a, b := p.server[cluster], p.cache[cluster]; a.replicas != b.replicas || !maps.Equal(a.each, b.each) {
					w.show(name, cluster)
				}
			}
		}
		if len(w.queue) == 0 {
			return
		}
		w.reconcile()
	}
	require.Fail(w.t, "it does not come to rest")
}

// No two parents get the same room: new replicas always fit beside all shards and decisions. At rest each parent has all
// its replicas, or no cluster has room for one more. Deleted parents leave no reservation.
func TestRoomIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &roomWorld{t: t, room: &room{}, caps: map[string]amounts{}, parents: map[string]*roomParent{}}
		for i := range rapid.IntRange(1, 3).Draw(t, "clusters") {
			w.caps[string(rune('a'+i))] = w.drawAmounts(20, true)
		}
		w.room.setCapacities(w.caps)
		w.parent("p0")
		for range rapid.IntRange(0, 60).Draw(t, "acts") {
			w.act()
		}
		w.rest()
		for name, p := range w.parents {
			var sum int64
			for _, is := range p.server {
				sum += is.replicas
			}
			if p.gone {
				require.Zero(t, sum)
				continue
			}
			require.Equal(t, p.replicas, sum+p.missing, name)
			for cluster, l := range w.room.limits(w.holder(name), p.each) {
				require.True(t, p.missing == 0 || p.server[cluster].replicas >= l.replicas, "%s misses %d, and %s has room for %d", name, p.missing, cluster, l.replicas)
			}
		}
		for cluster := range w.caps {
			sum := w.used(cluster, "")
			maps.DeleteFunc(sum, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
			require.Equal(t, sum, maps.Clone(orEmpty(w.room.used[cluster])))
		}
		for name, p := range w.parents {
			p.gone = true
			w.add(name)
		}
		w.rest()
		require.Empty(t, w.room.used)
		require.Empty(t, w.room.reservations)
		require.Empty(t, w.room.shards)
		require.Empty(t, w.room.waiting)
		require.Empty(t, w.room.woken)
	})
}

func orEmpty(a amounts) amounts {
	if a == nil {
		return amounts{}
	}
	return a
}

// Parents that lack room are woken in the order in which they began to wait, as many as fit. If one of them does not use
// the room, the next follows.
func TestRoomWakesInOrder(t *testing.T) {
	named := func(name string) holder { return holder{key: types.NamespacedName{Name: name}} }
	each := amounts{"cpu": 2}
	wants := func(r *room, name string, each amounts, n int64) []holder {
		limits := r.limits(named(name), each)
		d := decision{replicas: map[string]int64{"a": min(n, limits["a"].replicas)}, each: each, limits: limits}
		if n > limits["a"].replicas {
			d.lacks = []string{"a"}
		}
		entered, woken := r.enter(named(name), d)
		require.True(t, entered)
		return woken
	}
	r := &room{}
	r.setCapacities(map[string]amounts{"a": {"cpu": 6}})
	require.Empty(t, wants(r, "first", each, 3))
	for _, name := range []string{"large", "second", "third", "fourth", "second"} {
		of := each
		if name == "large" {
			of = amounts{"cpu": 5}
		}
		require.Empty(t, wants(r, name, of, 1))
	}
	require.Equal(t, []holder{named("second"), named("third")}, wants(r, "first", each, 1))
	require.Empty(t, wants(r, "second", each, 0), "it needs no room any longer")
	require.Equal(t, []holder{named("fourth")}, r.done(named("second")), "so the next has its room")
	require.Empty(t, wants(r, "third", each, 1))
	require.Empty(t, r.done(named("third")))
	require.Empty(t, wants(r, "fourth", each, 1))
	require.Empty(t, r.done(named("fourth")))
	r.forget(named("first"))
	r.forget(named("third"))
	require.Equal(t, []holder{named("large")}, r.forget(named("fourth")))
}

// Room that becomes free after a parent was cut, and before it waits, is not missed: the parent is cut again.
func TestRoomBecomesFreeBeforeAParentWaits(t *testing.T) {
	first, late := holder{key: types.NamespacedName{Name: "first"}}, holder{key: types.NamespacedName{Name: "late"}}
	each := amounts{"cpu": 2}
	r := &room{}
	r.setCapacities(map[string]amounts{"a": {"cpu": 2}})
	entered, _ := r.enter(first, decision{replicas: map[string]int64{"a": 1}, each: each, limits: r.limits(first, each)})
	require.True(t, entered)

	full := decision{each: each, limits: r.limits(late, each), lacks: []string{"a"}}
	require.Empty(t, r.forget(first), "late does not wait yet")
	entered, _ = r.enter(late, full)
	require.False(t, entered)
	require.Equal(t, int64(1), r.limits(late, each)["a"].replicas)
}

// The shards of a Job that have ended use no room, although they stay.
func TestEndedShardsUseNoRoom(t *testing.T) {
	job := func(condition string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"parallelism": int64(2)}, "status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}},
		}}
	}
	want := []Shard{{Cluster: "a", Object: job("")}, {Cluster: "b", Object: job("")}}
	have := []Shard{{Cluster: "a", Object: job("Failed")}}
	require.Equal(t, map[string]int64{"b": 2}, decided(Jobs(), job(""), Plan{}, want, have))
	require.Empty(t, decided(Jobs(), job("Complete"), Plan{}, want, have))
}

// An undivided Indexed Job counts as one replica with all its pods. In a divided one, each pod counts as a replica.
func TestRoomOfIndexes(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"completionMode": "Indexed", "parallelism": int64(3), "completions": int64(3),
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "x", "resources": map[string]any{"requests": map[string]any{"cpu": "2"}}}}}},
	}}}
	want := []Shard{{Cluster: "a", Object: job}}
	require.Equal(t, amounts{"cpu": 6000, "pods": 3}, unitOf(Jobs(), job, nil))
	require.Equal(t, map[string]int64{"a": 1}, decided(Jobs(), job, Plan{}, want, nil))
	job.SetAnnotations(map[string]string{"splitter.atoll.dev/divide-indexes": "true"})
	require.Equal(t, amounts{"cpu": 2000, "pods": 1}, unitOf(Jobs(), job, nil))
	require.Equal(t, map[string]int64{"a": 3}, decided(Jobs(), job, Plan{}, want, nil))
}
