// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
)

// Budget is what a workload allows over all clusters together.
type Budget struct {
	// Replicas is the desired number of replicas of the workload.
	Replicas int64
	// MaxUnavailable is how many of the replicas may be unavailable, and MaxSurge how many pods
	// there may be above Replicas. If both are zero, nothing can be replaced or moved.
	MaxUnavailable, MaxSurge int64
	// MoveSurge is how many more pods there may be while replicas move between clusters: with it,
	// replacements can start before the pods that they replace are gone, even if MaxSurge is zero.
	MoveSurge int64
}

// Options adjust a plan. The zero value works.
type Options struct {
	// Order names the clusters whose rollout starts first. The other clusters follow, sorted by
	// name.
	Order []string
	// Clusters is how many clusters may be in a rollout at the same time. With 1, a rollout starts
	// in a cluster only when all pods of the previous one are replaced and available. Zero means no
	// limit other than the budget.
	Clusters int64
}

// Cluster is the state of a workload in one cluster, as last observed. A workload that is being
// deleted in a cluster counts as absent there, like terminating pods in a Deployment.
type Cluster struct {
	// Name is unique among the clusters of one plan.
	Name string
	// Want is how many replicas the cluster shall have in the end, and Spec how many it has in its
	// spec now: 0 if the workload is not in the cluster yet.
	Want, Spec int64
	// Pods and Available are the numbers of pods that the cluster has reported, of any template.
	Pods, Available int64
	// Delayed is true if a pod becomes available some time after it is ready (minReadySeconds). If the
	// cluster scales down, any pod may then leave, not only those that are not available.
	Delayed bool
	// Unreported is true if the cluster has not reported any numbers yet.
	Unreported bool
	// Unobserved is true if the cluster's controller has not observed the present spec yet. Unless
	// the cluster is Unreported too, Plan then changes nothing there but Replicas to zero.
	Unobserved bool
	// Outdated is true if some pods, or the spec, have another template than the workload.
	Outdated bool
	// Unavailable and Surge are the maxUnavailable and maxSurge with which the spec permits the
	// cluster's controller to replace pods. They are zero if the spec is paused, or permits nothing
	// because all pods have its template.
	Unavailable, Surge int64
	// Prior bounds the specs before the present one that the controller may still follow, because the
	// cluster is Unobserved: what PriorTo returned for the step that led to the present spec.
	Prior Prior
	// Gone is true if the workload must leave the cluster, and the cluster may not do so any more. Its
	// pods count as available as reported, but do not use up the surge.
	Gone bool
	// Unreachable is true if the numbers may be old. The pods then count as unavailable, and the
	// step changes nothing in this cluster.
	Unreachable bool
}

// Prior bounds what a cluster may still do by specs before the present one. The zero value means that
// these allow nothing that the present spec does not allow.
type Prior struct {
	// Unavailable and Surge are the greatest maxUnavailable and maxSurge of the earlier specs,
	// relative to the replicas of the present one.
	Unavailable, Surge int64
	// Fewer is by how many pods the present spec allows more than the lowest of the earlier specs.
	// The controller may remove so many pods yet.
	Fewer int64
}

// Step is the next step of one cluster.
type Step struct {
	// Name is the name of the cluster.
	Name string
	// Replicas is the number of replicas for its spec.
	Replicas int64
	// Roll is true if its controller may replace pods, with these maxUnavailable and maxSurge, of
	// which at least one is above zero. If Roll is false and the cluster is Outdated, it must be
	// paused.
	Roll               bool
	Unavailable, Surge int64
}

// Plan returns one step for each cluster, in the order of the clusters. The package comment lists
// its guarantees. It does not modify its arguments, and takes O(n log n) for n clusters. It fails
// if a number is not from 0 to 2^31-1, or if two clusters have one name; the error names the field.
func Plan(b Budget, o Options, clusters []Cluster) ([]Step, error) {
	if err := b.check(o, clusters); err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	p := newPlan(b, o, clusters)
	p.revoke()
	p.shrink()
	p.grow()
	p.start()
	steps := make([]Step, len(clusters))
	for i, part := range p.parts {
		steps[i] = part.step
	}
	return steps, nil
}

// plan is a plan in the making. It begins with the present permissions of the clusters, and changes
// them within the rest of the budget.
type plan struct {
	Budget
	Options
	parts []*part // in the order of the argument
	order []*part // in the order in which rollouts start
	// available is how many available pods the clusters may still lose; pods is how many they may
	// still add. Both are below zero if the budget is exceeded.
	available, pods int64
}

// part is a cluster and its step.
type part struct {
	Cluster
	step Step
}

func newPlan(b Budget, o Options, clusters []Cluster) *plan {
	p := &plan{Budget: b, Options: o, available: min(0, b.MaxUnavailable-b.Replicas), pods: b.Replicas + b.MaxSurge}
	for _, c := range clusters {
		part := &part{Cluster: c, step: Step{Name: c.Name, Replicas: c.Spec, Unavailable: c.Unavailable, Surge: c.Surge}}
		part.step.Roll = c.Unavailable+c.Surge > 0
		p.available += c.certain()
		p.pods -= c.holds(c.now())
		p.parts = append(p.parts, part)
	}
	rank := make(map[string]int, len(o.Order))
	for i, name := range slices.Backward(o.Order) {
		rank[name] = i - len(o.Order)
	}
	p.order = slices.SortedFunc(slices.Values(p.parts), func(a, b *part) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return p
}

// revoke takes back unused permissions of rolling clusters, last cluster first, as far as the budget
// is exceeded. No other cluster gets them at once: a cluster may use its permissions until it has
// observed its new spec.
func (p *plan) revoke() {
	unavailable, surge := max(0, -p.available), max(0, -p.pods)
	for _, c := range slices.Backward(p.order) {
		s := &c.step
		if !s.Roll || c.fixed() {
			continue
		}
		less := min(unavailable, max(0, s.Unavailable-c.unavailable(*s)))
		s.Unavailable, unavailable = s.Unavailable-less, unavailable-less
		less = min(surge, max(0, s.Surge-max(0, c.Pods-s.Replicas)))
		// Surge that is in use already is removed, and available pods may be removed with it.
		least := lowest(s.Surge-less, s.Surge, func(n int64) bool { return c.loss(c.withSurge(n)) <= max(0, p.available) })
		p.available -= c.loss(c.withSurge(least))
		surge -= s.Surge - least
		c.step = c.withSurge(least)
	}
}

// shrink removes replicas from clusters that have more than they shall have.
func (p *plan) shrink() {
	for _, c := range p.order {
		if c.Unreachable || c.Want >= c.Spec {
			continue
		}
		n := lowest(c.Want, c.Spec, func(n int64) bool { return p.mayFollow(c, c.with(n)) })
		if n > 0 && c.fixed() {
			continue // wait for the cluster's controller, except to remove all replicas (n is 0): it may observe nothing any longer
		}
		p.available -= c.loss(c.with(n))
		c.step = c.with(n)
	}
}

// mayFollow reports whether the budget allows the loss of a step that removes replicas. If the budget
// is exceeded, the step must remove no available pod, also none that the cluster might lose anyway.
func (p *plan) mayFollow(c *part, s Step) bool {
	if p.available < 0 && (c.Unreported || c.stays(s.most()) < c.Available) {
		return s.Replicas == c.Spec
	}
	return c.loss(s) <= max(0, p.available)
}

// grow adds replicas to clusters that have fewer than they shall have.
func (p *plan) grow() {
	for _, c := range p.order {
		if c.fixed() || c.Want <= c.Spec {
			continue
		}
		// The lowest number of missing replicas is the highest number of replicas.
		missing := lowest(0, c.Want-c.Spec, func(n int64) bool { return c.gain(c.with(c.Want-n)) <= max(0, p.pods+p.MoveSurge) })
		p.pods -= c.gain(c.with(c.Want - missing))
		c.step = c.with(c.Want - missing)
	}
}

// lowest returns the lowest number from low to high for which ok is true. ok is true for high and for
// each number above one for which it is true.
func lowest(low, high int64, ok func(int64) bool) int64 {
	for low < high {
		if middle := low + (high-low)/2; ok(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high
}
