// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Periods are the times that pass before a changed readiness of a cluster takes effect. The zero
// value works.
type Periods struct {
	// Grace is how long a cluster may be unreachable before its replicas are placed elsewhere;
	// zero: 5 minutes. While no cluster is ready, none loses its replicas. When one of them becomes
	// ready again, Grace begins anew for the others.
	Grace time.Duration
	// Rejoin is how long a cluster that has lost its replicas must be ready before it gets new
	// ones; zero: 1 minute.
	Rejoin time.Duration
	// EvictionInterval delays the losses while many clusters are unready: one cluster loses its
	// replicas in each interval, the one that was unready for the longest time first; zero: 5 minutes.
	// Clusters that were delayed keep to the interval, also when fewer are unready.
	EvictionInterval time.Duration
	// UnhealthyPercent defines when many clusters are unready: if they are at least three, and more
	// than this percentage of all; zero: 55. With 100, each cluster loses its replicas after Grace,
	// unless no cluster is ready.
	UnhealthyPercent int
}

func (p Periods) defaults() Periods {
	if p.Grace <= 0 {
		p.Grace = 5 * time.Minute
	}
	if p.Rejoin <= 0 {
		p.Rejoin = time.Minute
	}
	if p.EvictionInterval <= 0 {
		p.EvictionInterval = 5 * time.Minute
	}
	if p.UnhealthyPercent <= 0 {
		p.UnhealthyPercent = 55
	}
	return p
}

// ReadClusters returns the clusters that SyncTargets describe, with the States that a process derives from them when it
// starts: a cluster that is not ready is Holding. It is pure. Use States in a process that runs on.
func ReadClusters(targets []*unstructured.Unstructured, now time.Time) []Cluster {
	r := newReadiness(Periods{})
	r.replace((&syncTargets{}).clusters(targets, now), now)
	list, _, _, _ := r.placing(now)
	return list
}

// States yields the clusters with their States, sorted by name: at once, after each change, and
// when time alone changes a State, until ctx ends. A cluster that was unreachable for longer than
// Grace is missing until it has been ready for Rejoin. The Splitter gives its Placement the same
// list; use States to base other decisions on it. States calls clusters.Watch, which may be called
// only once.
func States(ctx context.Context, clusters Clusters, p Periods) iter.Seq[[]Cluster] {
	return func(yield func([]Cluster) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		r := newReadiness(p)
		changed := make(chan struct{}, 1)
		wg.Go(func() {
			for list := range clusters.Watch(ctx) {
				r.set(ctx, list, time.Now())
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
		var before []Cluster
		timer := time.NewTimer(0)
		defer timer.Stop()
		for first := true; ; {
			select {
			case <-changed:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			list, _, again, known := r.placing(time.Now())
			if again > 0 {
				timer.Reset(again)
			}
			if known && (first || !slices.EqualFunc(before, list, same)) {
				before, first = list, false
				if !yield(slices.Clone(list)) {
					return
				}
			}
		}
	}
}
