// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// Into returns a copy of ctx with the logger chosen, which From then returns. If chosen is the zero
// value, Into takes the logger of ctx, or slog.Default if ctx has none. Log lines have the name of
// the component.
func Into(ctx context.Context, chosen logr.Logger, component string) context.Context {
	if chosen.IsZero() {
		chosen = From(ctx)
	}
	return logr.NewContext(ctx, chosen.WithName(component))
}

// From returns the logger of ctx, or slog.Default if ctx has none.
func From(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}
