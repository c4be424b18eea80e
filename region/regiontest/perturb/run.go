// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// run is one run of a scenario.
type run struct {
	scenario *Scenario
	plan     Plan
	servers  map[string]Server
	users    *users

	over    <-chan struct{} // closed when the run ends
	loops   sync.WaitGroup
	late    sync.WaitGroup // writes that are executed later
	backups []map[string]regiontest.Saved

	mu       sync.Mutex
	running  map[*instance]bool
	flying   int           // number of requests at the servers
	landed   chan struct{} // closed when the next request is complete
	trace    trace
	counts   map[Point]int
	struck   map[int]bool // faults of the plan that have occurred
	gaps     map[Point]*gap
	requests int
	last     time.Time // when a loop last wrote, or a fault last occurred
	step     int       // of the script: the current one
	redo     int       // the first step that the users have to repeat; -1: none
	failure  error     // the first failure before the end state is checked
}

// trace records writes and events of the loops.
type trace struct {
	writes []moment
	events []moment
}

// moment is a point that a run reached, and the step of the script at that time.
type moment struct {
	Point

	step int
}

// maxRequests is the greatest number of requests in a run. Without it, a loop that sends requests without waiting would
// keep the time of the bubble from passing.
const maxRequests = 30_000

// execute runs the scenario with a plan.
func execute(ctx context.Context, s *Scenario, plan Plan) (result outcome, err error) {
	servers, err := s.Servers()
	if err != nil {
		return outcome{}, fmt.Errorf("make the servers: %w", err)
	}
	for _, server := range servers {
		if c, ok := server.(interface{ Close() }); ok {
			defer c.Close()
		}
	}
	r := &run{
		scenario: s, plan: plan, servers: servers,
		running: map[*instance]bool{}, landed: make(chan struct{}),
		counts: map[Point]int{}, struck: map[int]bool{}, gaps: map[Point]*gap{}, last: time.Now(), redo: -1,
	}
	if r.users, err = newUsers(ctx, servers); err != nil {
		return outcome{}, err
	}
	if s.Always != nil {
		r.users.turns = make(turns, 1)
	}
	// Client-go would log the connections that the plan cuts.
	loops, stop := context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	r.over = loops.Done()
	defer func() {
		stop()
		r.loops.Wait()
		r.late.Wait()
	}()
	for i := range s.Loops {
		r.loops.Go(func() { r.supervise(loops, &s.Loops[i]) })
		if r.plan.twice(s.Loops[i].Name) {
			r.loops.Go(func() { r.supervise(loops, &s.Loops[i]) })
		}
	}
	if err := r.play(ctx); err != nil {
		return r.outcome(), err
	}
	if err := r.conclude(ctx); err != nil {
		return r.outcome(), err
	}
	if s.Holds != nil {
		if err := s.Holds(ctx, r.users.access); err != nil {
			return r.outcome(), fmt.Errorf("Scenario.Holds fails: %w", err)
		}
	}
	result = r.outcome()
	result.state, err = readState(ctx, servers, s.Differ)
	return result, err
}

// play runs the steps of the script.
func (r *run) play(ctx context.Context) error {
	if err := r.settle(ctx, r.scenario.quiet()); err != nil {
		return err
	}
	for i, step := range r.scenario.Script {
		backup := r.backUp()
		r.mu.Lock()
		r.backups = append(r.backups, backup)
		r.step = i
		r.mu.Unlock()
		if err := step.Do(ctx, r.users.access); err != nil {
			return fmt.Errorf("step %q: %w", step.Name, err)
		}
		if err := r.settle(ctx, r.scenario.quiet()); err != nil {
			return fmt.Errorf("after step %q: %w", step.Name, err)
		}
		if _, err := r.heal(ctx); err != nil {
			return fmt.Errorf("after step %q: %w", step.Name, err)
		}
	}
	return nil
}

// conclude waits until the loops have rested for Scenario.Rest. If a fault has deleted objects or undone steps
// meanwhile, the users make up for it (see heal), and conclude waits again.
func (r *run) conclude(ctx context.Context) error {
	for {
		if err := r.settle(ctx, r.scenario.rest()); err != nil {
			return err
		}
		if healed, err := r.heal(ctx); err != nil || !healed {
			return err
		}
	}
}

// heal lets the users repeat the steps that a restore has undone and create the objects that another client has
// deleted, and waits until the loops are at rest. It repeats this until no step and no object is missing, at most 20
// times. It reports whether any was missing.
func (r *run) heal(ctx context.Context) (healed bool, _ error) {
	for range 20 {
		r.mu.Lock()
		from, until := r.redo, r.step
		r.redo = -1
		r.mu.Unlock()
		pending, err := r.users.remake(ctx)
		if err != nil {
			return healed, err
		}
		if from < 0 && !pending {
			return healed, nil
		}
		healed = true
		if from >= 0 {
			if err := r.repeat(ctx, r.scenario.Script[from:until+1]); err != nil {
				return healed, err
			}
		}
		if err := r.settle(ctx, r.scenario.quiet()); err != nil {
			return healed, err
		}
	}
	return true, errors.New("objects that another client deleted cannot be created again")
}

// repeat lets the users repeat steps. Each step begins when the loops have come to rest, as in the first run of the
// script.
func (r *run) repeat(ctx context.Context, steps []Step) error {
	for _, step := range steps {
		if err := r.settle(ctx, r.scenario.quiet()); err != nil {
			return err
		}
		if err := step.Do(ctx, r.users.access); err != nil {
			return fmt.Errorf("repeat step %q after a restore: %w", step.Name, err)
		}
	}
	return nil
}

// settle waits until no loop has written for d. If this takes long, the users meanwhile create deleted objects again,
// because a loop may not come to rest without them.
func (r *run) settle(ctx context.Context, d time.Duration) error {
	began := time.Now()
	remake := began.Add(r.scenario.lateWatch())
	for {
		r.mu.Lock()
		failure, last := r.failure, r.last
		r.mu.Unlock()
		if failure != nil {
			return failure
		}
		if last.Before(began) {
			last = began
		}
		rest := d - time.Since(last)
		if rest <= 0 {
			return nil
		}
		if time.Since(began) > r.scenario.limit() {
			return fmt.Errorf("no rest for %s in %s; the last writes: %s", d, r.scenario.limit(), r.lastWrites())
		}
		if time.Now().After(remake) {
			if _, err := r.users.remake(ctx); err != nil {
				return err
			}
			remake = time.Now().Add(r.scenario.lateWatch())
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *run) lastWrites() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	const enough = 5
	var text string
	for _, m := range r.trace.writes[max(0, len(r.trace.writes)-enough):] {
		text += "\n  " + m.String()
	}
	return text
}

func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.failure = err
	}
}

// arrive records and numbers a write or an event, and returns the faults that are planned for it. It returns each fault
// once.
func (r *run) arrive(p Point, event bool) (Point, []Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.N = 0
	r.counts[p]++
	p.N = r.counts[p]
	if event {
		r.trace.events = append(r.trace.events, moment{p, r.step})
	} else {
		r.trace.writes = append(r.trace.writes, moment{p, r.step})
	}
	var faults []Fault
	for i, f := range r.plan {
		if f.At == p && !r.struck[i] && f.Kind != Twice {
			r.struck[i] = true
			faults = append(faults, f)
			r.last = time.Now() // give the loops time after the fault, even in the rest at the end
		}
	}
	return p, faults
}

// wrote records the time of a write that was executed, unless Scenario.Beats allows the write at rest.
func (r *run) wrote(p Point) {
	if r.scenario.Beats != nil && r.scenario.Beats(p) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
}

// count counts the requests of a run. A request beyond maxRequests fails the run, and waits for the end of the run, so
// that time passes.
func (r *run) count(p func() Point) {
	r.mu.Lock()
	r.requests++
	over := r.requests > maxRequests
	if over && r.failure == nil {
		r.failure = fmt.Errorf("the loops made %d requests; the last: %s", maxRequests, p())
	}
	r.mu.Unlock()
	if over {
		<-r.over
	}
}

func (p Plan) twice(loop string) bool {
	return slices.ContainsFunc(p, func(f Fault) bool { return f.Kind == Twice && f.At.Loop == loop })
}

// outcome returns the results so far.
func (r *run) outcome() outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	missed := 0
	for i, f := range r.plan {
		if f.Kind != Twice && !r.struck[i] {
			missed++
		}
	}
	return outcome{trace: trace{slices.Clone(r.trace.writes), slices.Clone(r.trace.events)}, missed: missed, owned: r.users.objects()}
}

// outcome is the result of a run.
type outcome struct {
	trace
	state  state
	missed int             // faults whose point the run did not reach
	owned  map[Object]bool // the users' objects; true: the script wrote it
}
