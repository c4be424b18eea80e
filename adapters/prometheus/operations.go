// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// abandoned is how long an operation may be without a command before it no longer counts as under way. An operation
// sends a command every few seconds while it waits. One that is replaced by an operation of the same idempotency key
// has no end.
const abandoned = 10 * time.Minute

// operations are the operations and commands under way of one Coordinator.
type operations struct {
	*fanoutMetrics

	mu      sync.Mutex
	running map[string]*operation
	sent    map[command][]time.Time
	cleaned time.Time
}

type operation struct {
	kind        string
	begun, last time.Time
}

// command identifies commands under way. Equal commands may run at the same time: their durations may then be
// exchanged, which changes neither their number nor their sum.
type command struct {
	operation, verb, kind string
	key                   types.NamespacedName
	peer                  region.PeerName
}

// ends reports whether an operation with this action has an EndEvent. Sweeps and the parts of a change of the
// membership have none.
func ends(action string) bool {
	switch action {
	case "add", "update", "remove", "move", "adopt", "":
		return true
	default:
		return false
	}
}

func (o *operations) step(_ context.Context, e fanout.StepEvent) {
	now, kind := time.Now(), e.Kind.String()
	c := command{e.Operation, e.Verb, kind, e.Key, e.Peer}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.running[e.Operation]
	if at == nil && !e.Done && ends(e.Action) {
		at = &operation{kind: kind, begun: now}
		o.running[e.Operation] = at
		o.inFlight.WithLabelValues(kind).Inc()
	}
	if at != nil {
		at.last = now
	}
	o.clean(now)
	if !e.Done {
		o.sent[c] = append(o.sent[c], now)
		o.commandsInFlight.WithLabelValues(string(e.Peer)).Inc()
		return
	}
	o.commands.WithLabelValues(e.Verb, string(e.Peer), e.Code).Inc()
	begun := o.sent[c]
	if len(begun) == 0 {
		return
	}
	if o.sent[c] = begun[1:]; len(begun) == 1 {
		delete(o.sent, c)
	}
	o.commandsInFlight.WithLabelValues(string(e.Peer)).Dec()
	o.commandDuration.WithLabelValues(string(e.Peer)).Observe(now.Sub(begun[0]).Seconds())
}

// remove removes an operation, and returns when it began.
func (o *operations) remove(id string) (begun time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.running[id]
	if at == nil {
		return time.Time{}, false
	}
	delete(o.running, id)
	o.inFlight.WithLabelValues(at.kind).Dec()
	return at.begun, true
}

// clean removes abandoned operations, at most once a minute. The caller holds the lock.
func (o *operations) clean(now time.Time) {
	if now.Sub(o.cleaned) < time.Minute {
		return
	}
	o.cleaned = now
	maps.DeleteFunc(o.running, func(_ string, at *operation) bool {
		if now.Sub(at.last) < abandoned {
			return false
		}
		o.inFlight.WithLabelValues(at.kind).Dec()
		return true
	})
}
