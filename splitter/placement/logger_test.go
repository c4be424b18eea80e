// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// The Logger in Options reports the cause of an unreachable API server, even if the context of
// Start has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	c, err := placement.New(logtest.Unreachable(t), splitter.StaticClusters("cluster-1"), placement.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, c.Start)
	lines.Await(t, "placement", "connection refused")
}
