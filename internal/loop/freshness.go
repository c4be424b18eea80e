// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// grace is the time without a watch after which a cache counts as stale. It is not zero, since
// watches end and restart regularly.
const grace = 5 * time.Second

var errLapsed = errors.New("the watch has ended and no new one has begun")

// freshness records whether a cache is up to date.
type freshness struct {
	name    string
	changed func() // may be nil

	mu      sync.Mutex
	log     logr.Logger
	err     error
	blind   bool // the last watch failed, although lists may succeed
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

// listed is called when the cache holds a complete list. A watch must follow.
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

// expectWatch makes the cache stale if no watch begins within grace. The caller holds the lock.
func (f *freshness) expectWatch() {
	f.expectNothing()
	var timer *time.Timer
	timer = time.AfterFunc(grace, func() {
		f.settle(func() error {
			if f.lapse != timer {
				return f.err // another call of settle came first
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

// settle calls next under the lock, and sets f.err to the result. It logs changes. It calls changed
// when the cache becomes stale or fresh, or the API server begins or ceases to serve the type.
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
		log.V(1).Info("Cache is up to date")
	case err != nil && (before == nil || before.Error() != err.Error()) && !errors.Is(err, errStopped):
		log.Info("Cache is stale", "reason", err.Error())
	}
	if ((err == nil) != (before == nil) || apierrors.IsNotFound(err) != apierrors.IsNotFound(before)) && f.changed != nil {
		f.changed()
	}
}
