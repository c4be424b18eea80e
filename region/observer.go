// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"time"
)

// Observer receives events. nil, and any nil field, is valid. Hooks are called synchronously without a lock held,
// possibly from many goroutines, and must return quickly. Events are structs so that fields can be added.
type Observer struct {
	// Probed is called after each health probe. The Health in the event has the expiry of the credentials.
	Probed func(ctx context.Context, e ProbeEvent)
	// Rotated is called after each attempt to replace credentials.
	Rotated func(ctx context.Context, e RotateEvent)
	// Call is called before each request to a peer. The request uses the returned context. The returned func is called
	// with the response's status or the error: enough for a span or a latency histogram. Both results may be nil.
	Call func(ctx context.Context, e CallEvent) (context.Context, func(status int, err error))
}

// ProbeEvent is one probe of a peer's health.
type ProbeEvent struct {
	Peer    PeerName
	Elapsed time.Duration
	Err     error  // the result of this probe
	Health  Health // the health after this probe
}

// RotateEvent is one attempt to replace a peer's credentials.
type RotateEvent struct {
	Peer       PeerName
	Generation uint64 // in use after the attempt
	Elapsed    time.Duration
	Err        error // nil: the new credentials are in use
}

// CallEvent is one request to a peer.
type CallEvent struct {
	Peer       PeerName
	Method     string // of HTTP
	Generation uint64 // of the credentials
	Caller     bool   // with a caller's token instead of the peer's own credentials
}

func (o *Observer) probed(ctx context.Context, e ProbeEvent) {
	if o != nil && o.Probed != nil {
		o.Probed(ctx, e)
	}
}

func (o *Observer) rotated(ctx context.Context, e RotateEvent) {
	if o != nil && o.Rotated != nil {
		o.Rotated(ctx, e)
	}
}

func (o *Observer) call(ctx context.Context, e CallEvent) (context.Context, func(status int, err error)) {
	end := func(int, error) {}
	if o == nil || o.Call == nil {
		return ctx, end
	}
	called, done := o.Call(ctx, e)
	if called == nil {
		called = ctx
	}
	if done == nil {
		done = end
	}
	return called, done
}
