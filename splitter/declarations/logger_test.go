// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// The Logger in Options reports the cause of an unreachable API server, even if the context of Start has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	run := func(ctx context.Context, _ []v1alpha1.WorkloadTypeSpec) error { <-ctx.Done(); return nil }
	f, err := declarations.New(logtest.Unreachable(t), run, declarations.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, f.Start)
	lines.Await(t, "declarations", "workloadtypes", "connection refused")
}
