// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import "context"

// copied returns a copy of the Observer next, which may be nil. Fields that a later release adds to the Observer are
// thus called too.
func copied[O any](next *O) *O {
	if next == nil {
		return new(O)
	}
	o := *next
	return &o
}

// chain returns a func that calls own and then next, which may be nil.
func chain[E any](own, next func(context.Context, E)) func(context.Context, E) {
	if next == nil {
		return own
	}
	return func(ctx context.Context, e E) {
		own(ctx, e)
		next(ctx, e)
	}
}
