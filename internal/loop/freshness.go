// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// grace is how long there may be no watch before that is an error: watches end and begin again all the time.
const grace = 5 * time.Second

var errLapsed = errors.New("the watch has ended and no new one has begun")

// freshness knows whether a copy is up to date.
type freshness struct {
	name    string
	changed func() // may be nil

	mu      sync.Mutex
	log     logr.Logger
	err     error
	blind   bool // lists may work, but the last watch failed
	running bool
	lapse   *time.Timer
}

func (f *freshness) start(log logr.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log, f.running = log, true
}

func (f *freshness) stop() {
	f.failed(fmt.Errorf("%s: %w", f.name, errStopped))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
}

func (f *freshness) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// listed is called when the content is complete. A watch has yet to begin.
func (f *freshness) listed() {
	f.settle(func() error {
		if f.blind {
			return f.err
		}
		f.expectWatch()
		return nil
	})
}

func (f *freshness) failed(err error) {
	f.settle(func() error {
		f.expectNothing()
		return err
	})
}

func (f *freshness) watchFailed(err error) {
	f.settle(func() error {
		f.blind = true
		f.expectNothing()
		return err
	})
}

func (f *freshness) opened() {
	f.settle(func() error {
		f.blind = false
		f.expectNothing()
		return nil
	})
}

func (f *freshness) closed() {
	f.settle(func() error {
		if f.err == nil {
			f.expectWatch()
		}
		return f.err
	})
}

// expectWatch ends the freshness if no watch begins soon. The caller holds the lock.
func (f *freshness) expectWatch() {
	f.expectNothing()
	var timer *time.Timer
	timer = time.AfterFunc(grace, func() {
		f.settle(func() error {
			if f.lapse != timer {
				return f.err // it was settled meanwhile
			}
			f.lapse = nil
			return fmt.Errorf("%s: %w", f.name, errLapsed)
		})
	})
	f.lapse = timer
}

func (f *freshness) expectNothing() {
	if f.lapse != nil {
		f.lapse.Stop()
		f.lapse = nil
	}
}

// settle sets what next returns, under the lock, and tells whom it concerns.
func (f *freshness) settle(next func() error) {
	f.mu.Lock()
	if !f.running {
		f.mu.Unlock()
		return
	}
	before := f.err
	f.err = next()
	err, log := f.err, f.log
	f.mu.Unlock()
	switch {
	case err == nil && before != nil:
		log.V(1).Info("Copy is fresh")
	case err != nil && (before == nil || before.Error() != err.Error()) && !errors.Is(err, errStopped):
		log.Info("Copy is not fresh", "reason", err.Error())
	}
	if (err == nil) != (before == nil) && f.changed != nil {
		f.changed()
	}
}
