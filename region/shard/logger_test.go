// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/shard"
)

// If the plane is unreachable, Members log the error to Options.Logger, even if the context of
// Start has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	members, err := shard.New(logtest.Unreachable(t), "default", "loops", shard.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, members.Start)
	lines.Await(t, "members", "loops", "connection refused")
}
