// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Server is an API server of a scenario. *regiontest.Server is one; anything that can be reached is another.
type Server interface {
	// Config reaches the server with all rights. It is a copy.
	Config() *rest.Config
}

// Restorable is a Server that can be put back to an earlier state. *regiontest.Server is one. Without it no plan has a
// Restore.
type Restorable interface {
	Server
	Save() regiontest.Saved
	Load(regiontest.Saved) error
}

// Access reaches the server of that name of Scenario.Servers. It panics on an unknown name, since that is a mistake in the
// scenario. Each call returns a Config of its own.
type Access func(server string) *rest.Config

// Scenario is what is perturbed.
type Scenario struct {
	// Servers makes the API servers of one run, with what they hold before anything starts. It is called once per run. A
	// server with a method Close is closed after the run.
	Servers func() (map[string]Server, error)

	// Loops are the controllers. All run at once.
	Loops []Loop

	// Script is what users do, step by step. Each step begins once the loops have made no write for Quiet.
	Script []Step

	// Holds judges the state in which an undisturbed or disturbed run ends, beside the comparison with the undisturbed
	// one. It gets all rights. Nil: there is no more to judge.
	Holds func(context.Context, Access) error

	// Always judges a run at each write of a loop that a server has carried out, those at rest and those that are carried out
	// late included: what must hold all the time, and not only in the end. An error fails the run. It gets all rights, and its
	// requests meet no fault; it must only read, and must not wait for the loops. Until it returns, no loop, no user and no
	// fault writes, so that what it reads is what the write has left. It is called by one goroutine at a time in a run, and by
	// several runs at once. Nil: nothing is judged before the end.
	Always func(context.Context, Write, Access) error

	// Differ are fields that may differ from run to run.
	Differ []Field

	// Beats says of a write that a loop may make it at rest: a heartbeat. Nil: none may be.
	Beats func(Point) bool

	// Quiet is how long no loop may have written before a step begins. Zero: a minute.
	Quiet time.Duration

	// Rest is how long no loop may write in the end. Zero: an hour.
	Rest time.Duration

	// Limit is how long the loops may take to come to rest, before that is a failure. Zero: 24 hours.
	Limit time.Duration
}

// Loop is a controller.
type Loop struct {
	// Name tells it from the other loops, in plans and failures.
	Name string

	// Run is the controller from its start to its end. It blocks until ctx ends, and may return an error before: then it
	// is started again after Restart, as a supervisor would. It must have ended all its goroutines when it returns.
	Run func(ctx context.Context, access Access) error

	// Restart is how long it is gone after a crash. Zero: a second.
	Restart time.Duration

	// Single is set if the controller must not run twice at the same time. No plan has Twice for it then.
	Single bool
}

// Step is what a user does.
type Step struct {
	Name string

	// Do must be repeatable: a user who finds what was done gone, after a restore, does it again. It gets all rights.
	Do func(ctx context.Context, access Access) error
}

// Field is a field of objects of a resource.
type Field struct {
	Resource string // plural; "" is every one
	Path     string // keys, joined by dots; a key with dots in it stands in brackets: metadata.annotations[example.com/at]
}

func (s *Scenario) quiet() time.Duration { return or(s.Quiet, time.Minute) }
func (s *Scenario) rest() time.Duration  { return or(s.Rest, time.Hour) }
func (s *Scenario) limit() time.Duration { return or(s.Limit, 24*time.Hour) }

// Both last longer than quiet, so that the script goes on meanwhile.
func (s *Scenario) lateWrite() time.Duration { return s.quiet() * 3 / 2 }
func (s *Scenario) lateWatch() time.Duration { return s.quiet() * 10 }

func or(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}
