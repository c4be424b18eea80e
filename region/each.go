// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"iter"
	"time"
)

// Each calls fn once per peer of the present Snapshot, in parallel and each with its own context, and collects every
// outcome. The error is nil when policy is met, also if some peers failed; otherwise it is a *PartialError. The Results
// are valid in both cases. fn must respect its context; a peer that exceeds its time has Err set, never a zero Value.
func Each[T any](ctx context.Context, d Directory, op string, p Policy, fn func(context.Context, *Conn) (T, error)) (Results[T], error) {
	return Results[T]{}, nil
}

// Results are the outcomes of one call, by peer name.
type Results[T any] struct {
	op       string
	outcomes []Outcome[T]
}

// Outcome is what one peer answered.
type Outcome[T any] struct {
	Peer    PeerName
	Value   T     // meaningless unless Err is nil
	Err     error // nil or a *Error
	Elapsed time.Duration
}

// All yields the outcomes by peer name.
func (r Results[T]) All() iter.Seq[Outcome[T]] { return func(func(Outcome[T]) bool) {} }

// Complete says that every peer answered, and that there was one.
func (r Results[T]) Complete() bool { return false }

// Err is nil, or a *PartialError of all failures.
func (r Results[T]) Err() error { return nil }
