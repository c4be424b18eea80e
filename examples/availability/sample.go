// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/examples/internal/chart"
	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/internal/loop"
)

// sampling is the interval of samples.
const sampling = 100 * time.Millisecond

// sampler counts pods in the clusters, and compares the counts with the limits. It reads caches, which watches keep.
type sampler struct {
	clusters []*stage.Cluster
	pods     []*loop.Objects // by cluster
	upstream *loop.Objects   // Deployments
	traffic  *traffic
	lag      time.Duration // how much the delays of the caches may differ

	mu      sync.Mutex
	limits  limits
	begin   time.Time
	away    map[string]bool    // clusters whose link was cut in the last sample
	left    map[types.UID]bool // leftovers: pods that ran in a lost cluster when it returned
	before  [][]pod            // of the last sample, by cluster
	last    counts
	at      time.Time      // of the last sample
	within  time.Time      // of the last sample that kept all limits
	samples []chart.Sample // each change
	marks   []chart.Mark
	step    summary
}

// counts are the pods of one sample.
type counts struct {
	available []int // by cluster, without leftovers; -1: the link of the cluster is cut
	present   int   // pods that are not terminating, without leftovers
	left      int   // leftovers that still run
}

func (c counts) total() (sum int) {
	for _, n := range c.available {
		sum += max(0, n)
	}
	return sum
}

// summary has the extremes of the samples of one step.
type summary struct {
	samples      int
	fewest, most int           // available replicas
	pods         int           // the greatest number of pods
	above, below int           // the least distance above the budget, and below the limit of pods
	pause        time.Duration // the longest time between two samples
	wrong        []string
}

func newSampler(on *stage.Stage, upstream *loop.Objects, t *traffic, lag time.Duration) *sampler {
	s := &sampler{
		upstream: upstream, clusters: on.Clusters, traffic: t, lag: lag, begin: time.Now(), at: time.Now(), within: time.Now(),
		away: map[string]bool{}, left: map[types.UID]bool{}, last: counts{available: make([]int, len(on.Clusters))},
		before: make([][]pod, len(on.Clusters)),
	}
	for _, c := range on.Clusters {
		s.pods = append(s.pods, loop.NewObjects(c.Conn.Dynamic(), pods, loop.ObjectsOptions{Namespace: namespace, Labels: "app=" + shop}))
	}
	return s
}

// run keeps the caches and takes samples until ctx ends.
func (s *sampler) run(ctx context.Context) error {
	var caches sync.WaitGroup
	defer caches.Wait()
	for _, c := range append(s.pods, s.upstream) {
		caches.Go(func() { _ = c.Start(ctx) }) // always nil
	}
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.sample()
		case <-ctx.Done():
			return nil
		}
	}
}

// pod is a pod of one sample.
type pod struct {
	uid       types.UID
	available bool
}

// podsOf returns the pods in a cache that are not terminating.
func podsOf(cache *loop.Objects) (found []pod) {
	for _, obj := range cache.List() {
		if obj.GetDeletionTimestamp() == nil {
			found = append(found, pod{obj.GetUID(), isTrue(obj, "Ready")})
		}
	}
	return found
}

// sample takes a sample. It leaves the sample out if a cache is stale.
func (s *sampler) sample() {
	cut, now := make([]bool, len(s.clusters)), make([][]pod, len(s.clusters))
	for i, c := range s.clusters {
		if cut[i] = c.Link.IsCut(); cut[i] {
			continue
		}
		if s.pods[i].Err() != nil {
			return
		}
		now[i] = podsOf(s.pods[i])
	}
	desired := 0
	if obj, ok := s.upstream.Get(types.NamespacedName{Namespace: namespace, Name: shop}); ok {
		desired = number(obj, "spec", "replicas")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(s.count([2][][]pod{s.before, now}, cut), desired)
	s.before = now
}

// count counts the pods of one sample. Caches of two clusters differ in their delay. So of this and the previous sample each
// cluster counts with the higher number of available replicas and the lower number of pods: a replica that moves is counted
// as available at least once, and as a pod at most once. s.mu must be held.
func (s *sampler) count(rounds [2][][]pod, cut []bool) counts {
	now := counts{available: make([]int, len(s.clusters))}
	for i, c := range s.clusters {
		if s.away[c.Name] && !cut[i] { // the cluster has returned
			for _, p := range rounds[1][i] {
				s.left[p.uid] = true
			}
		}
		var available, present [2]int
		left := 0
		for round := range rounds {
			left = 0
			for _, p := range rounds[round][i] {
				switch {
				case s.left[p.uid]:
					left++
				case p.available:
					available[round]++
					fallthrough
				default:
					present[round]++
				}
			}
		}
		now.available[i], now.present, now.left = max(available[0], available[1]), now.present+min(present[0], present[1]), now.left+left
		if cut[i] {
			now.available[i] = -1
		}
	}
	return now
}

// add judges a sample and keeps it. s.mu must be held.
func (s *sampler) add(now counts, desired int) {
	s.step.pause = max(s.step.pause, time.Since(s.at))
	s.at = time.Now()
	at := s.at.Sub(s.begin)
	lost := false
	for i, c := range s.clusters {
		lost = lost || now.available[i] < 0 && !s.away[c.Name]
		s.away[c.Name] = now.available[i] < 0
	}
	s.last = now
	d := demand{desired: desired, wanted: s.traffic.wanted()}
	d.needed, d.enough = s.traffic.needed()
	s.limits.next(now.total(), now.present, d, lost)
	wrong := s.limits.judge(now.total(), now.present)
	if len(wrong) == 0 {
		s.within = s.at
	} else if s.at.Sub(s.within) > s.lag { // else a cache may only be late
		for _, w := range wrong {
			s.step.wrong = append(s.step.wrong, fmt.Sprintf("at %.1fs: %s in %v", at.Seconds(), w, now))
		}
	}
	s.step.add(now, s.limits)
	sample := chart.Sample{At: at, Areas: now.available, Lines: []int{now.present, desired, s.limits.budget, s.limits.most}}
	if n := len(s.samples); n == 0 || !slices.Equal(s.samples[n-1].Areas, sample.Areas) || !slices.Equal(s.samples[n-1].Lines, sample.Lines) {
		s.samples = append(s.samples, sample)
	}
}

func (m *summary) add(now counts, l limits) {
	total := now.total()
	above, below := total-l.budget, l.most-now.present
	if m.samples == 0 {
		m.fewest, m.above, m.below = total, above, below
	}
	m.samples++
	m.fewest, m.most, m.pods = min(m.fewest, total), max(m.most, total), max(m.pods, now.present)
	m.above, m.below = min(m.above, above), min(m.below, below)
}

// next begins a step: it marks the time, and returns the summary of the samples since the previous call.
func (s *sampler) next(title string) summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.step
	s.step = summary{}
	if title != "" {
		s.marks = append(s.marks, chart.Mark{At: time.Since(s.begin), Text: title})
	}
	return before
}

// joining raises the limit of pods by the minReplicas that a joining cluster takes over, until it is called with zero.
func (s *sampler) joining(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits.joining = n
}

// now returns the counts of the last sample.
func (s *sampler) now() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// chart returns the chart of all samples.
func (s *sampler) chart() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return chart.Chart{
		Title: "Available replicas over time", Areas: stage.Names()[1:], Samples: s.samples, Marks: s.marks,
		Lines: []chart.Line{
			{Name: "pods", Color: "#777777"}, {Name: "desired", Color: "#0000cc", Dashed: true},
			{Name: "budget", Color: "#cc0000"}, {Name: "limit", Color: "#cc6600", Dashed: true},
		},
	}.SVG()
}
