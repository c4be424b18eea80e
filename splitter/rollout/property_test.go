// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Templates, replicas, goals and budgets of a workload change at random times, clusters report late
// and become unreachable, and controllers act in any order within their rules. No action of a
// controller brings the available pods below the budget or the pods above the surge. In the end each
// cluster has its goal.
func TestBudgetOverAllClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { storm(t, false) })
}

// As TestBudgetOverAllClusters, but pods fail, templates are bad, and clusters are lost. Controllers
// may then exceed the budget before they observe what Plan took back. But in the end each cluster has
// its goal.
func TestEndsAfterFailures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { storm(t, true) })
}

func storm(t *rapid.T, failures bool) {
	names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "clusters")]
	w := &world{sites: map[string]*site{}, bad: map[int]bool{}, opts: drawOptions(t, names)}
	for _, name := range names {
		w.sites[name] = &site{run: map[int]pods{}}
	}
	w.request(drawWorkload(t, names, 1))
	w.settle(t)
	template := 1
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		name := rapid.SampledFrom(names).Draw(t, "cluster")
		s := w.sites[name]
		last := 10
		if failures {
			last = 13
		}
		switch event := rapid.IntRange(0, last).Draw(t, "event"); event {
		case 0:
			next := drawWorkload(t, names, w.template)
			w.request(next)
		case 1:
			template++
			next := w.workload
			next.template = rapid.IntRange(max(1, template-2), template).Draw(t, "template") // also back to an earlier one
			w.request(next)
		case 2:
			s.unreachable = !s.unreachable
		case 3:
			if !s.unreachable {
				s.tell()
			}
		case 4, 5:
			w.plan(t)
		case 6:
			next := w.workload
			next.goals = maps.Clone(w.goals)
			n := min(w.goals[name], rapid.Int64Range(1, 6).Draw(t, "moves"))
			next.goals[name] -= n
			next.goals[rapid.SampledFrom(names).Draw(t, "to")] += n
			w.request(next)
		case 11:
			for _, version := range []int{1, template} {
				if p := s.run[version]; p.works > 0 {
					s.run[version] = pods{p.works - 1, p.ready, p.broken + 1}
					w.disturbed = true
				}
			}
		case 12:
			w.bad[w.template], w.disturbed = true, true
		case 13:
			w.sites[name], w.disturbed = &site{run: map[int]pods{}}, true // lost, and empty when it returns
		default:
			if list := s.actions(w); len(list) > 0 {
				w.act(t, list[rapid.IntRange(0, len(list)-1).Draw(t, "action")])
			}
		}
	}
	for _, s := range w.sites {
		s.unreachable = false
	}
	if w.bad[w.template] {
		next := w.workload
		next.template = template + 1
		w.request(next)
	}
	w.settle(t)
	for name, s := range w.sites {
		want := map[int]pods{}
		if n := w.goals[name]; n > 0 {
			want[w.template] = pods{works: n}
		}
		require.Equal(t, want, s.run, "%s", w)
	}
	before := w.writes
	w.settle(t)
	require.Equal(t, before, w.writes, "writes without a change")
}

// A cluster whose rollout is not complete keeps others waiting if Options.Clusters is 1, in the order
// of Options.Order.
func TestOneClusterAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		w := &world{sites: map[string]*site{}, bad: map[int]bool{}, opts: drawOptions(t, names)}
		w.opts.Clusters = 1
		for _, name := range names {
			w.sites[name] = &site{run: map[int]pods{}}
		}
		w.request(drawWorkload(t, names, 1))
		w.settle(t)
		next := w.workload
		next.template = 2
		w.request(next)
		var began []string
		for {
			wrote := w.plan(t)
			rolling := 0
			for _, name := range names {
				s := w.sites[name]
				if s.spec.inProgress && !s.spec.paused {
					if rolling++; !slices.Contains(began, name) {
						began = append(began, name)
					}
				}
				for _, do := range s.actions(w)[:min(1, len(s.actions(w)))] {
					w.act(t, do)
					wrote = true
				}
				s.tell()
			}
			require.LessOrEqual(t, rolling, 1)
			if !wrote {
				break
			}
		}
		var want []string
		for _, name := range append(slices.Clone(w.opts.Order), names...) {
			if w.goals[name] > 0 && !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		require.Equal(t, want, began, "%s", fmt.Sprint(w.opts))
	})
}
