// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import "context"

// Copy returns a copy of the Observer next, which may be nil. So fields that a later release adds to the Observer are called,
// too.
func Copy[O any](next *O) *O {
	if next == nil {
		return new(O)
	}
	o := *next
	return &o
}

// Chain returns a func that calls own and then next, which may be nil.
func Chain[E any](own, next func(context.Context, E)) func(context.Context, E) {
	if next == nil {
		return own
	}
	return func(ctx context.Context, e E) {
		own(ctx, e)
		next(ctx, e)
	}
}
