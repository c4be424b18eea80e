// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter/rollout"
)

// workload is what a user requests.
type workload struct {
	budget   rollout.Budget
	template int
	goals    map[string]int64
	delayed  bool // pods become available some time after they are ready
}

// spec is the spec of the workload in one cluster, with the marks that a caller of Plan keeps there.
type spec struct {
	generation         int
	replicas           int64
	template           int
	paused             bool
	unavailable, surge int64
	inProgress         bool // a rollout began and was not observed to be complete
	prior              rollout.Prior
}

// pods counts the pods of one template: the available ones, the ready ones that are not available yet, and others.
type pods struct{ works, ready, broken int64 }

func (p pods) all() int64 { return p.works + p.ready + p.broken }

// report is what a cluster has reported last.
type report struct {
	generation                int
	pods, available, upToDate int64
	ever                      bool
}

// site is one cluster. Its controller follows the rules of the Deployment controller, in any order.
type site struct {
	spec        spec
	seen        spec // the spec that the controller follows
	run         map[int]pods
	said        report
	unreachable bool
}

func (s *site) total() (all, works int64) {
	for _, p := range s.run {
		all, works = all+p.all(), works+p.works
	}
	return all, works
}

// world is a workload in several clusters.
type world struct {
	workload
	sites map[string]*site
	bad   map[int]bool // templates whose pods never become available
	opts  rollout.Options
	// least and most bound the available pods and all pods: by the budgets of all workloads since
	// the world was at rest.
	least, most int64
	disturbed   bool // pods have failed or a cluster was lost since the world was at rest
	writes      int
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.sites)) }

func (w *world) total() (all, works int64) {
	for _, s := range w.sites {
		a, b := s.total()
		all, works = all+a, works+b
	}
	return all, works
}

// observe returns a cluster as a caller of Plan sees it.
func (w *world) observe(name string) rollout.Cluster {
	s := w.sites[name]
	if s.spec.replicas == 0 {
		return rollout.Cluster{Name: name, Want: w.goals[name], Unreachable: s.unreachable}
	}
	c := rollout.Cluster{
		Name: name, Want: w.goals[name], Spec: s.spec.replicas, Pods: s.said.pods, Available: s.said.available, Delayed: w.delayed,
		Unreported: !s.said.ever, Unobserved: s.said.generation < s.spec.generation, Unreachable: s.unreachable,
	}
	complete := !c.Unobserved && s.said.upToDate == c.Pods && c.Pods == c.Available && c.Pods == c.Spec
	c.Outdated = s.spec.template != w.template || s.said.upToDate < s.said.pods || s.spec.inProgress && !complete
	// At rest a spec has the strategy of the workload, which permits nothing: all pods have its template.
	if c.Outdated && (s.spec.inProgress || s.said.upToDate < s.said.pods) {
		if !s.spec.paused {
			c.Unavailable, c.Surge = s.spec.unavailable, s.spec.surge
		}
	}
	if c.Unobserved {
		c.Prior = s.spec.prior
	}
	return c
}

// plan calls Plan and writes the steps. It reports whether it wrote anything.
func (w *world) plan(t require.TestingT) (wrote bool) {
	var clusters []rollout.Cluster
	for _, name := range w.names() {
		clusters = append(clusters, w.observe(name))
	}
	for _, c := range clusters {
		// The pods of a cluster that was never heard of, and that the workload leaves, do not count.
		w.disturbed = w.disturbed || c.Unreported && c.Want == 0
	}
	_, worksBefore := w.total()
	steps, err := rollout.Plan(w.budget, w.opts, clusters)
	require.NoError(t, err)
	require.Len(t, steps, len(clusters))
	for i, step := range steps {
		c, s := clusters[i], w.sites[step.Name]
		if step.Replicas == 0 {
			if s.spec.replicas > 0 { // deleted: its pods are terminating
				w.sites[step.Name], wrote = &site{run: map[int]pods{}, unreachable: s.unreachable}, true
				w.writes++
			}
			continue
		}
		next := spec{generation: s.spec.generation, replicas: step.Replicas, template: w.template, prior: s.spec.prior}
		switch {
		case c.Outdated && step.Roll:
			next.unavailable, next.surge, next.inProgress = step.Unavailable, step.Surge, true
			require.Positive(t, step.Unavailable+step.Surge)
		case c.Outdated:
			next.paused, next.inProgress, next.surge = true, true, max(0, c.Pods-step.Replicas)
		default:
			next.unavailable, next.surge = w.budget.MaxUnavailable, w.budget.MaxSurge
		}
		if next.template != s.spec.template || next.inProgress != s.spec.inProgress || next.replicas != c.Spec ||
			step.Unavailable != c.Unavailable || step.Surge != c.Surge {
			next.prior = c.PriorTo(step)
			if next.paused {
				next.prior.Surge = max(next.prior.Surge, next.surge)
			}
		}
		if next != s.spec {
			next.generation++
			s.spec, wrote = next, true
			w.writes++
		}
	}
	if _, works := w.total(); works < worksBefore && !w.disturbed {
		require.GreaterOrEqual(t, works, w.least, "available pods: %s", w)
	}
	return wrote
}

// actions lists what the controller of a cluster may do next.
func (s *site) actions(w *world) (list []func()) {
	do := func(template int, works, ready, broken int64) {
		list = append(list, func() {
			p := s.run[template]
			p = pods{p.works + works, p.ready + ready, p.broken + broken}
			if s.run[template] = p; p == (pods{}) {
				delete(s.run, template)
			}
		})
	}
	if s.spec.replicas == 0 {
		return nil
	}
	if s.seen.generation != s.spec.generation {
		list = append(list, func() { s.seen = s.spec })
	}
	all, works := s.total()
	templates := slices.Sorted(maps.Keys(s.run))
	for _, template := range templates {
		if s.run[template].ready > 0 {
			do(template, 1, -1, 0)
		}
		switch {
		case s.run[template].broken == 0 || w.bad[template]:
		case w.delayed:
			do(template, 0, 1, -1)
		default:
			do(template, 1, 0, -1)
		}
	}
	remove := func(template int, also bool) { // also available pods
		if s.run[template].broken > 0 {
			do(template, 0, 0, -1)
		}
		if s.run[template].ready > 0 {
			do(template, 0, -1, 0)
		}
		if s.run[template].works > 0 && also {
			do(template, -1, 0, 0)
		}
	}
	updated := s.run[s.seen.template]
	mixed := all > updated.all()
	switch {
	case !mixed || s.seen.paused && len(templates) == 1:
		template := s.seen.template
		if mixed {
			template = templates[0]
		}
		switch p := s.run[template]; {
		case all < s.seen.replicas:
			do(template, 0, 0, 1)
		case all > s.seen.replicas:
			remove(template, p.broken == 0)
		}
	case all > s.seen.replicas+s.seen.surge:
		for _, template := range templates { // scaling down in proportion takes pods of any template
			remove(template, true)
		}
	case s.seen.paused:
		if all < s.seen.replicas+s.seen.surge {
			for _, template := range templates {
				do(template, 0, 0, 1)
			}
		}
	default:
		if all < s.seen.replicas+s.seen.surge && updated.all() < s.seen.replicas {
			do(s.seen.template, 0, 0, 1)
		}
		for _, template := range templates {
			if template == s.seen.template {
				continue
			}
			remove(template, works > s.seen.replicas-s.seen.unavailable)
		}
	}
	return list
}

// tell reports the state of a cluster.
func (s *site) tell() {
	all, works := s.total()
	p := s.run[s.seen.template]
	s.said = report{generation: s.seen.generation, pods: all, available: works, upToDate: p.all(), ever: true}
}

// act carries out one action of a controller, and checks the budget.
func (w *world) act(t require.TestingT, do func()) {
	allBefore, worksBefore := w.total()
	do()
	all, works := w.total()
	if w.disturbed {
		return
	}
	if works < worksBefore {
		require.GreaterOrEqual(t, works, w.least, "available pods: %s", w)
	}
	if all > allBefore {
		require.LessOrEqual(t, all, w.most, "pods: %s", w)
	}
}

// settle lets everything happen until nothing changes any more. All pods become available, unless
// their template is bad.
func (w *world) settle(t require.TestingT) {
	for range 100 + 20*int(w.budget.Replicas) {
		wrote := w.plan(t)
		for _, name := range w.names() {
			s := w.sites[name]
			for {
				list := s.actions(w)
				if len(list) == 0 {
					break
				}
				w.act(t, list[0])
			}
			if before := s.said; !s.unreachable {
				s.tell()
				wrote = wrote || s.said != before
			}
		}
		if !wrote {
			w.rest()
			return
		}
	}
	require.Fail(t, "does not end", "%s", w)
}

// rest notes that the world is at rest: the budgets of earlier workloads no longer count.
func (w *world) rest() {
	all, works := w.total()
	w.disturbed = false
	w.least = min(works, w.budget.Replicas-w.budget.MaxUnavailable)
	w.most = max(all, w.budget.Replicas+w.budget.MaxSurge+w.budget.MoveSurge)
}

// request replaces the workload.
func (w *world) request(next workload) {
	w.workload = next
	w.least = min(w.least, next.budget.Replicas-next.budget.MaxUnavailable)
	w.most = max(w.most, next.budget.Replicas+next.budget.MaxSurge+next.budget.MoveSurge)
}

func (w *world) String() string {
	text := fmt.Sprintf("%+v least %d most %d", w.workload, w.least, w.most)
	for _, name := range w.names() {
		text += fmt.Sprintf("\n  %s %+v", name, *w.sites[name])
	}
	return text
}

// drawWorkload draws a workload, whose goals add up to its replicas.
func drawWorkload(t *rapid.T, names []string, template int) workload {
	w := workload{template: template, goals: map[string]int64{}}
	for _, name := range names {
		n := rapid.Int64Range(0, 6).Draw(t, "goal")
		w.goals[name] = n
		w.budget.Replicas += n
	}
	w.budget.MaxUnavailable = rapid.Int64Range(0, 5).Draw(t, "maxUnavailable")
	w.budget.MaxSurge = rapid.Int64Range(0, 5).Draw(t, "maxSurge")
	if w.budget.MaxUnavailable+w.budget.MaxSurge == 0 {
		w.budget.MaxUnavailable = 1
	}
	w.delayed = rapid.Bool().Draw(t, "delayed")
	w.budget.MoveSurge = rapid.SampledFrom([]int64{0, 0, 0, 2}).Draw(t, "moveSurge")
	return w
}

// drawOptions draws options.
func drawOptions(t *rapid.T, names []string) rollout.Options {
	o := rollout.Options{Clusters: rapid.Int64Range(0, 2).Draw(t, "clusters")}
	o.Order = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID[string]).Draw(t, "order")
	return o
}
