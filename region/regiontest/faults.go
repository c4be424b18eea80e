// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is one scripted fault. It applies to requests that match all fields that are set.
type Fault struct {
	Verb      string // get, list, watch, create, update, patch, delete, deletecollection; "" matches all
	Resource  schema.GroupResource
	Namespace string
	Name      string
	Skip      int // number of matching requests that pass before the fault applies
	Times     int // number of requests to which the fault applies; zero: one; -1: no limit
	Do        Action
}

// Action is the effect of a fault on a request. Make one with a function that returns an Action, such as Refuse.
type Action struct {
	name       string
	code       int
	retryAfter time.Duration
	delay      time.Duration
	call       func()
}

// String names the action.
func (a Action) String() string { return a.name }

// Refuse responds with code before the request has any effect: 401, 403, 409, 429, 500, 503 and so on. retryAfter, if
// given, is rounded up to whole seconds.
func Refuse(code int, retryAfter ...time.Duration) Action {
	a := Action{name: "Refuse", code: code}
	for _, d := range retryAfter {
		a.retryAfter = d
	}
	return a
}

// RefuseAfter responds as Refuse does, but after d, like a server whose admission webhook times out. The delay ends
// early if the request's context ends.
func RefuseAfter(d time.Duration, code int) Action {
	return Action{name: "RefuseAfter", code: code, delay: d}
}

// Delay delays the request for d, then lets it pass. If the request's context ends first, the server does not execute
// the request.
func Delay(d time.Duration) Action { return Action{name: "Delay", delay: d} }

// DropRequest breaks the connection before the request has any effect.
func DropRequest() Action { return Action{name: "DropRequest"} }

// DropReply executes the request and breaks the connection instead of responding.
func DropReply() Action { return Action{name: "DropReply"} }

// ApplyLate responds with 504 at once and executes the request after d, as a real server may after its own timeout.
// Close drops requests that still wait.
func ApplyLate(d time.Duration) Action { return Action{name: "ApplyLate", delay: d} }

// Hang never executes the request. It breaks the connection when the request's context ends or the server is closed.
func Hang() Action { return Action{name: "Hang"} }

// Gone responds with 410: to a watch as an ERROR event, and to any other request as a Status.
func Gone() Action { return Action{name: "Gone"} }

// Crash calls f and breaks the connection without executing the request. If f stops the caller, the caller has crashed
// before it sent the request.
func Crash(f func()) Action { return Action{name: "Crash", call: f} }

// CrashAfter executes the request, calls f and breaks the connection. If f stops the caller, the caller has crashed
// before it learned the outcome.
func CrashAfter(f func()) Action { return Action{name: "CrashAfter", call: f} }

// Inject appends faults to the server's script. The server applies the first fault of the script that matches a
// request; a fault that still has requests to skip (Skip) leaves the request to the next fault. A request meets at most
// one fault.
func (s *Server) Inject(f ...Fault) { s.faults.add(f) }

var (
	errPartitioned = errors.New("partitioned")
	errDropped     = errors.New("dropped by a fault")
)

// faults holds the script, and the funcs with which a partition ends the open watches.
type faults struct {
	mu      sync.Mutex
	script  []*Fault
	watches map[int]context.CancelFunc
	next    int
}

func (f *faults) add(script []Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range script {
		if fault.Times == 0 {
			fault.Times = 1
		}
		f.script = append(f.script, &fault)
	}
}

func (f *faults) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script = nil
}

// match returns the action of the first fault that applies to c, or nil. It decrements Skip of the faults that let c
// pass, and Times of the fault that applies.
func (f *faults) match(c *call) *Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, fault := range f.script {
		if !fault.matches(c) {
			continue
		}
		if fault.Skip > 0 {
			fault.Skip--
			continue
		}
		if fault.Times > 0 {
			if fault.Times--; fault.Times == 0 {
				f.script = append(f.script[:i:i], f.script[i+1:]...)
			}
		}
		return &fault.Do
	}
	return nil
}

func (f *Fault) matches(c *call) bool {
	return (f.Verb == "" || f.Verb == c.Verb) &&
		(f.Resource == schema.GroupResource{} || f.Resource == c.GroupResource()) &&
		(f.Namespace == "" || f.Namespace == c.Namespace) &&
		(f.Name == "" || f.Name == c.Name)
}

// watching registers cancel, so that a partition ends the watch. The returned func unregisters it.
func (f *faults) watching(cancel context.CancelFunc) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watches == nil {
		f.watches = map[int]context.CancelFunc{}
	}
	id := f.next
	f.next++
	f.watches[id] = cancel
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watches, id)
	}
}

func (f *faults) cutWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cancel := range f.watches {
		cancel()
	}
}

// play applies a to c. It returns true if a has completed the request.
func (s *Server) play(a *Action, w http.ResponseWriter, c *call) bool {
	switch a.name {
	case "Refuse":
		s.fail(w, c, refusal(a, c))
	case "RefuseAfter":
		s.delay(c, a.delay)
		s.fail(w, c, refusal(a, c))
	case "Gone":
		err := apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
		if c.Verb == "watch" {
			s.failWatch(w, c, err)
		} else {
			s.fail(w, c, err)
		}
	case "Delay":
		s.delay(c, a.delay)
		return false
	case "Hang":
		select {
		case <-c.http.Context().Done():
		case <-s.closed:
		}
		s.abort(c, errDropped)
	case "DropRequest":
		s.abort(c, errDropped)
	case "Crash":
		a.call()
		s.abort(c, errDropped)
	case "DropReply":
		s.handle(&discard{header: http.Header{}}, c)
		s.abort(c, errDropped)
	case "CrashAfter":
		s.handle(&discard{header: http.Header{}}, c)
		a.call()
		s.abort(c, errDropped)
	case "ApplyLate":
		s.applyLate(a.delay, c)
		s.fail(w, c, apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0))
	default:
		return false
	}
	return true
}

// delay waits for d, and aborts c if its client stops waiting first.
func (s *Server) delay(c *call, d time.Duration) {
	ctx := c.http.Context()
	if !sleep(ctx.Done(), d) {
		s.abort(c, ctx.Err())
	}
}

func refusal(a *Action, c *call) error {
	err := apierrors.NewGenericServerResponse(a.code, c.Verb, c.GroupResource(), c.Name, "refused by a fault", int((a.retryAfter+time.Second-1)/time.Second), true)
	if a.code == http.StatusUnauthorized {
		err = apierrors.NewUnauthorized("Unauthorized")
	}
	return err
}

// applyLate executes c after d, in a goroutine that Close waits for.
func (s *Server) applyLate(d time.Duration, c *call) {
	body, err := c.body()
	if err != nil {
		return
	}
	late := *c
	late.http = c.http.Clone(context.WithoutCancel(c.http.Context()))
	late.http.Body = rewound(body)
	s.late.Go(func() {
		if sleep(s.closed, d) {
			s.handle(&discard{header: http.Header{}}, &late)
		}
	})
}

// sleep waits for d and returns true. It returns false if done is closed first.
func sleep(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}
