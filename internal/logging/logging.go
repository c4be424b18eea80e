// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// Into returns ctx with the logger that From then returns: chosen, unless it is the zero value,
// else the one of ctx, else slog.Default. Lines have the name of the component.
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
