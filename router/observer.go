// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// Observer receives events of the Router. A nil Observer and nil fields are valid. Hooks are called synchronously
// without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Routed is called for each request of a Client, with its peer or the error of the look-up.
	Routed func(ctx context.Context, e RouteEvent)
	// Resolved is called after each question to the Resolver.
	Resolved func(ctx context.Context, e ResolveEvent)
	// Saved is called after each attempt to write the Cache.
	Saved func(ctx context.Context, e SaveEvent)
	// Waited is called for each request that waited for QPS or InFlight of its region's Budget, or that the limit
	// Waiting or, for a stream, the limit Streams refused.
	Waited func(ctx context.Context, e WaitEvent)
}

// RouteEvent is one request on its way to a region.
type RouteEvent struct {
	Region region.Key
	Peer   region.PeerName // empty if Err is set
	Err    error
}

// ResolveEvent is one question to the Resolver.
type ResolveEvent struct {
	Region  region.Key
	Peer    region.PeerName // empty if Err is set
	Elapsed time.Duration
	Err     error
}

// SaveEvent is one attempt to write the Cache.
type SaveEvent struct {
	Routes int
	Err    error
}

// WaitEvent is one request that waited for its region's Budget, or that Budget.Waiting or Budget.Streams refused.
type WaitEvent struct {
	Region  region.Key
	Elapsed time.Duration
	Err     error // ErrBusy, or the error of the request's context; nil if the request got its turn
}

func (o *Observer) routed(ctx context.Context, e RouteEvent) {
	if o != nil && o.Routed != nil {
		o.Routed(ctx, e)
	}
}

func (o *Observer) resolved(ctx context.Context, e ResolveEvent) {
	if o != nil && o.Resolved != nil {
		o.Resolved(ctx, e)
	}
}

func (o *Observer) saved(ctx context.Context, e SaveEvent) {
	if o != nil && o.Saved != nil {
		o.Saved(ctx, e)
	}
}

func (o *Observer) waited(ctx context.Context, e WaitEvent) {
	if o != nil && o.Waited != nil {
		o.Waited(ctx, e)
	}
}
