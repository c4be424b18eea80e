// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/rest"
)

// instance is one run of a loop.
type instance struct {
	loop  string
	gone  <-chan struct{} // closed when the instance ends
	cause func() error    // why the instance ended; nil while it runs
	end   context.CancelCauseFunc
}

// supervise runs a loop, and restarts it when it has ended.
func (r *run) supervise(ctx context.Context, loop *Loop) {
	for ctx.Err() == nil {
		r.live(ctx, loop)
		select {
		case <-time.After(or(loop.Restart, time.Second)):
		case <-ctx.Done():
		}
	}
}

// live runs a loop until it ends. In an undisturbed run, a loop that ends before ctx fails the run.
func (r *run) live(ctx context.Context, loop *Loop) {
	mine, end := context.WithCancelCause(ctx)
	defer end(errEnded)
	i := &instance{loop: loop.Name, gone: mine.Done(), cause: func() error { return context.Cause(mine) }, end: end}
	r.mu.Lock()
	r.running[i] = true
	r.mu.Unlock()
	err := loop.Run(mine, func(name string) *rest.Config { return r.config(name, i) })
	r.mu.Lock()
	delete(r.running, i)
	r.mu.Unlock()
	if ctx.Err() == nil && !errors.Is(i.cause(), errCrashed) && len(r.plan) == 0 {
		r.fail(fmt.Errorf("loop %s has ended in an undisturbed run: %w", loop.Name, cmp.Or(err, errEnded)))
	}
}

var (
	errCrashed = errors.New("crashed by the plan")
	errEnded   = errors.New("it returned no error")
)

// config returns the configuration with which instance i of a loop reaches a server. Its requests
// meet the faults of the plan.
func (r *run) config(name string, i *instance) *rest.Config {
	server, ok := r.servers[name]
	if !ok {
		panic(fmt.Sprintf("perturb: loop %s asks for server %q; there are %v", i.loop, name, slices.Sorted(maps.Keys(r.servers))))
	}
	config := server.Config()
	config.Wrap(func(next roundTripper) roundTripper {
		return &door{run: r, server: name, instance: i, next: next}
	})
	return config
}
