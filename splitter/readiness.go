// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
)

// readiness records when each cluster last became ready or unready. A cluster loses its replicas
// after it was unready for grace, and gets replicas again after it was ready for rejoin. While no
// cluster is ready, none loses its replicas: the cause is probably the upstream or this process,
// and no other cluster could run the replicas. The node lifecycle controller of Kubernetes treats
// zones in the same way.
type readiness struct {
	grace, rejoin time.Duration

	mu        sync.Mutex
	known     bool
	disrupted bool // no cluster is ready
	clusters  map[string]*history
}

type history struct {
	Cluster
	since time.Time // when the cluster was first listed, Ready last changed to or from True, or a disruption ended
	was   bool      // the cluster has been ready at least once
	out   bool      // the cluster has lost its replicas
}

// set replaces the list of clusters. It keeps the recorded history of the clusters that stay in the
// list.
func (r *readiness) set(list []Cluster, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[string]*history, len(list))
	some := slices.ContainsFunc(list, func(c Cluster) bool { return c.Ready == metav1.ConditionTrue })
	resumed := r.disrupted && some
	r.disrupted = !some
	for _, c := range list {
		h, ok := r.clusters[c.Name]
		switch changed := ok && (h.Ready == metav1.ConditionTrue) != (c.Ready == metav1.ConditionTrue); {
		case !ok:
			h = &history{since: now}
		case changed, resumed && !h.out:
			h.since = now // after a disruption the grace period begins anew
		}
		c.Taints = dated(c.Taints, h.Taints, now)
		h.Cluster = c
		h.was = h.was || c.Ready == metav1.ConditionTrue
		next[c.Name] = h
	}
	r.clusters, r.known = next, true
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

// placing returns the clusters with their States, sorted by name, without the clusters that have
// lost their replicas. silent names the clusters that are not ready. again is the time until the
// next State changes without an event; zero means that no such change is due. known reports whether
// set was called.
func (r *readiness) placing(now time.Time) (list []Cluster, silent map[string]bool, again time.Duration, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent = map[string]bool{}
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
		case !ok && (h.out || !r.disrupted && !wait(h.since.Add(r.grace))):
			h.out = h.was // a cluster that was never ready needs no rejoin period
			continue
		case ok && h.out && wait(h.since.Add(r.rejoin)):
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
