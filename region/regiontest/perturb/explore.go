// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Options configure Explore. The zero value runs each plan that has one fault, except plans of the Kind RestoreUnder.
type Options struct {
	// Plans bounds the number of plans that have one fault. The choice covers loops, writes and kinds evenly. Zero: no
	// bound.
	Plans int

	// Pairs is the number of additional random plans, each with two faults.
	Pairs int

	// Seed determines the choice of plans. Zero: 1.
	Seed uint64

	// Workers is the number of concurrent runs. Zero: 2.
	Workers int

	// Real means that Scenario.Servers are real API servers. Then runs have no bubble of testing/synctest, take real
	// time, and run one after another; set Scenario.Quiet and Scenario.Rest to seconds.
	Real bool

	// RestoreUnder adds plans of the Kind RestoreUnder.
	RestoreUnder bool

	// Only, unless nil, selects plans: Explore calls it for each plan that has one fault, and leaves the plan out if
	// Only returns false.
	Only func(Plan) bool
}

// Report summarizes the runs of Explore.
type Report struct {
	Writes, Events int  // of the undisturbed run; with Settle, Writes counts all runs
	Plans          int  // number of plans with one fault, before Options.Plans bounds them
	Runs           int  // number of plans or seeds that were run
	Missed         int  // faults whose point the run did not reach
	MostWrites     int  // greatest number of writes in one of these runs
	Busiest        Plan // the plan of the run with MostWrites
	Failures       []Failure
}

// Failure is a plan, or a seed, with which a scenario failed.
type Failure struct {
	Plan Plan
	Seed uint64 // of Settle
	Err  error
}

// String returns the report as one line.
func (r Report) String() string {
	return fmt.Sprintf("%d writes and %d events undisturbed; %d plans, %d runs, %d missed; at most %d writes, by %s; %d failures",
		r.Writes, r.Events, r.Plans, r.Runs, r.Missed, r.MostWrites, r.Busiest, len(r.Failures))
}

// Explore runs the scenario undisturbed, and then once with each plan. If plans fail, it fails t and prints the
// shortest of them as a Go test that repeats the run. Unless Options.Real is set, each run has a bubble of
// testing/synctest, so t must not be in a bubble. Explore returns when all runs have ended.
func Explore(t *testing.T, s Scenario, opts Options) Report {
	t.Helper()
	report := Find(t, s, opts)
	if len(report.Failures) > 0 {
		f := report.Failures[0]
		t.Errorf("%d of %d plans went wrong; the shortest: %s: %v\n\n%s", len(report.Failures), report.Runs, f.Plan, f.Err, source(f.Plan))
	}
	return report
}

// Find does the same as Explore, but fails t only if an undisturbed run fails, or if two undisturbed runs end in
// different states.
func Find(t *testing.T, s Scenario, opts Options) Report {
	t.Helper()
	x := &explorer{scenario: &s, real: opts.Real, reference: undisturbed(t, &s, opts.Real)}
	plans := x.choose(t, opts)
	each(t, "plans", plans, opts.workers(), x.try)
	slices.SortFunc(x.report.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(len(a.Plan), len(b.Plan)), cmp.Compare(a.Plan.String(), b.Plan.String()))
	})
	return x.report
}

func (o Options) workers() int {
	if o.Real {
		return 1
	}
	return cmp.Or(o.Workers, 2)
}

// explorer compares disturbed runs of a scenario with the undisturbed one.
type explorer struct {
	scenario  *Scenario
	real      bool
	reference outcome

	mu     sync.Mutex
	report Report
}

// choose returns the plans to run.
func (x *explorer) choose(t *testing.T, opts Options) []Plan {
	t.Helper()
	restorable, err := x.scenario.restorable()
	if err != nil {
		t.Fatalf("make the servers: %v", err)
	}
	restores := []Kind{Restore}
	if opts.RestoreUnder {
		restores = append(restores, RestoreUnder)
	}
	all := singles(x.scenario, x.reference, restorable, restores)
	if opts.Only != nil {
		all = slices.DeleteFunc(all, func(p Plan) bool { return !opts.Only(p) })
	}
	x.report = Report{Writes: len(x.reference.writes), Events: len(x.reference.events), Plans: len(all)}
	seed := cmp.Or(opts.Seed, 1)
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it chooses test cases
	return slices.Concat(sample(all, opts.Plans, random), pairs(all, opts.Pairs, random))
}

// restorable reports, for each server by name, whether it is Restorable.
func (s *Scenario) restorable() (map[string]bool, error) {
	servers, err := s.Servers()
	if err != nil {
		return nil, err
	}
	restorable := map[string]bool{}
	for name, server := range servers {
		_, restorable[name] = server.(Restorable)
		if c, ok := server.(interface{ Close() }); ok {
			c.Close()
		}
	}
	return restorable, nil
}

// try runs a plan and adds the result to the report. If the plan fails, try first shortens it.
func (x *explorer) try(t *testing.T, plan Plan) {
	t.Helper()
	full := plan
	result, err := x.judge(t, plan)
	if err != nil {
		plan = shrink(plan, func(p Plan) bool {
			_, again := x.judge(t, p)
			if again != nil {
				err = again
			}
			return again != nil
		})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.report.Runs++
	x.report.Missed += result.missed
	if n := len(result.writes); n > x.report.MostWrites {
		x.report.MostWrites, x.report.Busiest = n, full
	}
	if err != nil {
		x.report.Failures = append(x.report.Failures, Failure{Plan: plan, Err: err})
	}
}

func (x *explorer) judge(t *testing.T, plan Plan) (outcome, error) {
	t.Helper()
	result, err := play(t, x.scenario, plan, x.real)
	if err == nil {
		err = result.state.equals(x.reference.state)
	}
	return result, err
}

// each calls do for each item, in as many parallel subtests as workers. It returns when all subtests have ended.
func each[T any](t *testing.T, name string, items []T, workers int, do func(*testing.T, T)) {
	t.Helper()
	work := make(chan T, len(items))
	for _, item := range items {
		work <- item
	}
	close(work)
	t.Run(name, func(t *testing.T) {
		for range workers {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for item := range work {
					do(t, item)
				}
			})
		}
	})
}

// undisturbed runs the scenario twice without faults and returns the first outcome. It fails t if a run fails, or if
// the end states differ.
func undisturbed(t *testing.T, s *Scenario, real bool) outcome {
	t.Helper()
	unbrake()
	first, err := play(t, s, nil, real)
	if err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	second, err := play(t, s, nil, real)
	if err != nil {
		t.Fatalf("undisturbed, for the second time: %v", err)
	}
	if d := second.state.diff(first.state); d != "" {
		t.Fatalf("two undisturbed runs end in different states; name the fields that may differ (Scenario.Differ):\n%s", d)
	}
	return first
}

// Replay runs the scenario undisturbed, and then with one plan. It fails t if a run fails, or if the run with the plan
// ends in another state than the undisturbed one. Each run has a bubble of testing/synctest, so t must not be in a
// bubble.
func Replay(t *testing.T, s Scenario, plan Plan) {
	t.Helper()
	x := &explorer{scenario: &s, reference: undisturbed(t, &s, false)}
	result, err := x.judge(t, plan)
	if result.missed > 0 {
		t.Logf("%s: %d points were not reached", plan, result.missed)
	}
	if err != nil {
		t.Fatalf("%s: %v", plan, err)
	}
}

// unbrake removes the handler of apimachinery that makes a caller wait until a millisecond has passed since the last
// error in the process. Each bubble starts its clock anew, so the last error may seem to be hours in the future, and
// the wait would take as long.
func unbrake() {
	if handlers := utilruntime.ErrorHandlers; len(handlers) > 1 {
		utilruntime.ErrorHandlers = handlers[:1]
	}
}

// play runs the scenario with a plan, in a bubble unless its servers are real.
func play(t *testing.T, s *Scenario, plan Plan, real bool) (result outcome, err error) {
	t.Helper()
	if real {
		return execute(t.Context(), s, plan)
	}
	synctest.Test(t, func(t *testing.T) { result, err = execute(t.Context(), s, plan) })
	return result, err
}

// source returns the Go source of a test that replays p.
func source(p Plan) string {
	return "func TestPlan(t *testing.T) {\n\tperturb.Replay(t, scenario(), " + strings.ReplaceAll(p.Source(), "\n", "\n\t") + ")\n}\n"
}
