// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Server is an API server of a scenario. *regiontest.Server implements it; any reachable API server can be wrapped as
// one.
type Server interface {
	// Config returns a configuration with all rights. Each call returns a separate copy.
	Config() *rest.Config
}

// Restorable is a Server that can be restored to an earlier state. *regiontest.Server implements it. No plan restores a
// Server that is not Restorable.
type Restorable interface {
	Server
	Save() regiontest.Saved
	Load(regiontest.Saved) error
}

// Access returns a configuration for a server in Scenario.Servers. It panics on an unknown name, since that is a
// mistake in the scenario. Each call returns a separate Config.
type Access func(server string) *rest.Config

// Scenario describes API servers, the controllers that run on them, the actions of users, and the checks of a run.
type Scenario struct {
	// Servers makes the API servers of one run, with their initial objects. It is called once per run, and once more by
	// Explore. A server with a method Close is closed after the run.
	Servers func() (map[string]Server, error)

	// Loops are the controllers. All run at once.
	Loops []Loop

	// Script lists the actions of users. Each step begins once the loops have made no write for Quiet.
	Script []Step

	// Holds checks the end state of each run, disturbed or not. Explore also compares the end state with the one of the
	// undisturbed run. The Access has all rights. Nil: no further check.
	Holds func(context.Context, Access) error

	// Always checks an invariant after each write of a loop that a server has executed, including writes at rest and
	// late writes. An error fails the run. The Access has all rights, and requests through it meet no fault. Always
	// must only read, and must not wait for the loops. Until it returns, no loop, user or fault writes, so it reads the
	// state right after the write. One run calls it from one goroutine at a time; several runs may call it
	// concurrently. Nil: no check before the end.
	Always func(context.Context, Write, Access) error

	// Differ lists fields that may differ between runs.
	Differ []Field

	// Beats reports whether a loop may make the write of this point while it is at rest, such as a heartbeat. Nil: it
	// may make no write.
	Beats func(Point) bool

	// Quiet is the time without a write of any loop after which a step begins. Zero: a minute.
	Quiet time.Duration

	// Rest is the time without a write of any loop after which the run ends. Zero: an hour.
	Rest time.Duration

	// Limit is how long the loops may take to come to rest; longer is a failure. Zero: 24 hours.
	Limit time.Duration
}

// Loop is a controller.
type Loop struct {
	// Name identifies the loop in plans and failures.
	Name string

	// Run runs the controller and blocks until ctx ends. If it returns earlier, the package starts it again after
	// Restart, as a supervisor does; in a run without faults, an earlier return fails the run. All its goroutines must
	// have ended when it returns.
	Run func(ctx context.Context, access Access) error

	// Restart is the delay before a restart after a crash or an early return. Zero: a second.
	Restart time.Duration

	// Single means that the controller must not run twice at the same time. No plan has Twice for it.
	Single bool
}

// Step is an action of a user.
type Step struct {
	Name string

	// Do must be repeatable: a user whose changes are lost in a restore repeats it. The Access has all rights.
	Do func(ctx context.Context, access Access) error
}

// Field is a field of objects of a resource.
type Field struct {
	Resource string // plural; "" means all
	Path     string // keys, joined by dots; a key that contains dots is in brackets: metadata.annotations[example.com/at]
}

func (s *Scenario) quiet() time.Duration { return or(s.Quiet, time.Minute) }
func (s *Scenario) rest() time.Duration  { return or(s.Rest, time.Hour) }
func (s *Scenario) limit() time.Duration { return or(s.Limit, 24*time.Hour) }

// Delays of late writes and of late watches. Both are longer than Quiet, so that the script continues meanwhile.
func (s *Scenario) lateWrite() time.Duration { return s.quiet() * 3 / 2 }
func (s *Scenario) lateWatch() time.Duration { return s.quiet() * 10 }

func or(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}
