// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// play is a stage with the settings of the story.
type play struct {
	*stage.Stage
	script *script       // nil with real clusters
	grace  time.Duration // how long an unreachable cluster keeps its replicas
}

// tell runs the story on a stage.
func tell(ctx context.Context, on play, out *narrator) error {
	if err := install(ctx, on.Upstream); err != nil {
		return err
	}
	control, err := newControl(on.Upstream, on.grace)
	if err != nil {
		return err
	}
	s := &story{
		play: on, out: out, control: control, mirror: newMirror(on.Upstream), weights: map[string]string{},
		counter: &counter{clusters: on.Clusters, out: out},
	}
	// The loops must outlive the story: without them nothing could be removed after an
	// interruption.
	group, running := errgroup.WithContext(context.WithoutCancel(ctx))
	running, end := context.WithCancel(running)
	group.Go(func() error { return control.run(running) })
	group.Go(func() error { return s.mirror.run(running) })
	group.Go(func() error {
		defer end()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(running, cancel)()
		return s.tell(ctx)
	})
	return group.Wait()
}

// story is the state that the chapters share.
type story struct {
	play
	out     *narrator
	control *control
	mirror  *mirror
	counter *counter
	weights map[string]string
	created bool
}

func (s *story) tell(ctx context.Context) (err error) {
	begin := time.Now()
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cleanUp(ctx))
		}
	}()
	for _, chapter := range []struct {
		title string
		tell  func(context.Context) error
	}{
		{"Two clusters are attached to an API server that runs nothing", s.attachTwo},
		{"A Deployment is divided over them, and its status is that of both", s.divide},
		{"A cluster fails", s.fail},
		{"It comes back", s.comeBack},
		{"A cluster joins", s.join},
		{"A cluster is drained", s.drain},
		{"All of it goes", s.remove},
	} {
		s.out.chapter(chapter.title)
		if err := chapter.tell(ctx); err != nil {
			return fmt.Errorf("chapter %d, %s: %w", s.out.chapters, chapter.title, err)
		}
	}
	s.out.space()
	s.out.say(fmt.Sprintf("All as promised, in %s.", time.Since(begin).Round(time.Second)))
	return nil
}

// show prints the first state for which the function holds returns true, beginning with the state
// that it printed last.
func (s *story) show(ctx context.Context, what string, holds func(state) bool) error {
	now, err := s.mirror.next(ctx, what, holds)
	if err != nil {
		return err
	}
	s.out.table("kubectl get deployments", now.rows())
	return nil
}

// divided returns a function that accepts a state in which shards of exactly these sizes are ready,
// the parent is ready, and as many further shards as leaving are being deleted.
func divided(want map[string]int, leaving int) func(state) bool {
	return func(now state) bool {
		if len(now) != 1+len(want)+leaving || !slices.Equal(now.shards(), slices.Sorted(maps.Keys(want))) || !complete(now[workload]) {
			return false
		}
		for cluster, n := range want {
			shard := now.shard(cluster)
			if _, of := ready(shard); of != n || !complete(shard) {
				return false
			}
		}
		is, _ := ready(now[workload])
		return is == replicas
	}
}

// become calls do, waits until the workload is divided as wanted, and shows that. It returns the
// lowest number of ready replicas meanwhile.
func (s *story) become(ctx context.Context, want map[string]int, leaving int, do func() error) (lowest int, err error) {
	if err := do(); err != nil {
		return 0, err
	}
	there := divided(want, leaving)
	lowest, err = s.counter.while(ctx, func() error {
		_, err := s.mirror.next(ctx, fmt.Sprintf("shards of %v", want), there)
		return err
	})
	if err != nil {
		return lowest, err
	}
	return lowest, s.show(ctx, "the same", there)
}

// withinBudget fails if fewer replicas than the budget were ready.
func (s *story) withinBudget(lowest int) error {
	if lowest < budget {
		return fmt.Errorf("only %d replicas were ready at a time, of at least %d", lowest, budget)
	}
	s.out.note("never below %d: that is what the Deployment's maxUnavailable of %d allows, over all clusters.", budget, replicas-budget)
	return nil
}
