// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"time"
)

// Await calls holds every 50 ms until it returns true or an error, or ctx ends.
func Await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	for {
		ok, err := holds(ctx)
		switch {
		case ok:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
