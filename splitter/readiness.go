// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
)

// readiness records when each cluster last became ready or unready. A cluster loses its replicas
// after it was unready for Periods.Grace, and gets replicas again after it was ready for
// Periods.Rejoin.
//
// If many clusters are unready at once, the cause is probably the network, and the ready clusters may
// lack room. So the unready ones lose their replicas one after another. While no cluster is ready,
// none loses its replicas. The node lifecycle controller of Kubernetes treats zones in the same way.
type readiness struct {
	periods Periods

	mu       sync.Mutex
	known    bool
	none     bool      // no cluster is ready
	many     bool      // more than Periods.UnhealthyPercent, and at least unhealthyLeast, are unready
	slow     bool      // clusters lose their replicas one after another
	last     time.Time // when a cluster last lost its replicas
	clusters map[string]*history
}

// unhealthyLeast is the least number of unready clusters that counts as many.
const unhealthyLeast = 3

type history struct {
	Cluster
	since   time.Time // when the cluster was first listed, Ready last changed to or from True, or any cluster became ready after none was
	was     bool      // the cluster has been ready at least once
	out     bool      // the cluster has lost its replicas
	rejoins bool      // the cluster was ready before it lost its replicas, so it needs the rejoin period
}

func newReadiness(p Periods) *readiness { return &readiness{periods: p.defaults()} }

// set replaces the list of clusters. It keeps the recorded history of the clusters that stay in the
// list. It logs when many clusters become unready, and when they are no longer many.
func (r *readiness) set(ctx context.Context, list []Cluster, now time.Time) {
	before, after, unready := r.replace(list, now)
	switch log := logging.From(ctx).WithValues("unready", unready, "clusters", len(list)); {
	case after && !before:
		log.Info("Many clusters are unready: they lose their replicas one after another", "interval", r.periods.EvictionInterval)
	case before && !after:
		log.Info("Fewer clusters are unready: only those that were delayed still lose their replicas one after another")
	}
}

// replace is set without the log. It returns whether many clusters were unready before, and whether many are now.
func (r *readiness) replace(list []Cluster, now time.Time) (before, after bool, unready int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[string]*history, len(list))
	before = r.many
	for _, c := range list {
		if c.Ready != metav1.ConditionTrue {
			unready++
		}
	}
	resumed := r.none && unready < len(list)
	r.none = unready == len(list)
	r.many = unready >= unhealthyLeast && unready*100 > r.periods.UnhealthyPercent*len(list)
	for _, c := range list {
		h, ok := r.clusters[c.Name]
		switch changed := ok && (h.Ready == metav1.ConditionTrue) != (c.Ready == metav1.ConditionTrue); {
		case !ok:
			h = &history{since: now}
		case changed, resumed && !h.out:
			h.since = now // the grace period begins anew when a cluster is ready after none was
		}
		c.Taints = dated(c.Taints, h.Taints, now)
		h.Cluster = c
		h.was = h.was || c.Ready == metav1.ConditionTrue
		next[c.Name] = h
	}
	r.clusters, r.known = next, true
	return before, r.many, unready
}

// gone reports whether a list of clusters is known and does not contain the cluster.
func (r *readiness) gone(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known && r.clusters[cluster] == nil
}

// lost reports whether the cluster is not ready, or is ready again after it lost its replicas but
// has not completed the rejoin period yet.
func (r *readiness) lost(cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.clusters[cluster]
	return h != nil && (h.out || h.Ready != metav1.ConditionTrue)
}

// lose marks the clusters that lose their replicas now. It returns the time until another cluster may lose its replicas,
// zero if there is no such cluster. While no cluster is ready, it does nothing and returns zero.
func (r *readiness) lose(now time.Time) (again time.Duration) {
	if r.none {
		return 0
	}
	var due []*history
	for _, h := range r.clusters {
		if h.Ready == metav1.ConditionTrue || h.out {
			continue
		}
		if rest := h.since.Add(r.periods.Grace).Sub(now); rest > 0 {
			again = loop.Sooner(again, rest)
		} else {
			due = append(due, h)
		}
	}
	// When enough clusters are ready again, the clusters that were delayed still lose their replicas one after another.
	r.slow = r.many || r.slow && len(due) > 0
	if r.slow && len(due) > 0 {
		slices.SortFunc(due, func(a, b *history) int { return cmp.Or(a.since.Compare(b.since), strings.Compare(a.Name, b.Name)) })
		if rest := r.last.Add(r.periods.EvictionInterval).Sub(now); rest > 0 {
			return loop.Sooner(again, rest)
		}
		if len(due) > 1 {
			again = loop.Sooner(again, r.periods.EvictionInterval)
		}
		due = due[:1]
	}
	for _, h := range due {
		h.out, h.rejoins, r.last = true, h.was, now
	}
	return again
}

// placing returns the clusters with their States, sorted by name, without the clusters that have
// lost their replicas. silent names the clusters that are not ready. again is the time until the
// next State changes without an event; zero means that no such change is due. known reports whether
// set was called.
func (r *readiness) placing(now time.Time) (list []Cluster, silent map[string]bool, again time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent, again = map[string]bool{}, r.lose(now)
	wait := func(until time.Time) bool {
		again = loop.Sooner(again, until.Sub(now))
		return until.After(now)
	}
	for _, h := range r.clusters {
		c := h.Cluster
		c.State = Placeable
		ok := c.Ready == metav1.ConditionTrue
		if !ok {
			silent[c.Name] = true
		}
		switch {
		case !ok && h.out:
			continue
		case ok && h.out && h.rejoins && wait(h.since.Add(r.periods.Rejoin)):
			continue
		case !ok:
			c.State = Holding
		default:
			h.out = false
			if c.Unschedulable {
				c.State = Holding
			}
		}
		if !c.EvictAfter.IsZero() && !wait(c.EvictAfter) {
			c.State = Draining
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) })
	return list, silent, again, r.known
}
