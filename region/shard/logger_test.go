// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/shard"
)

// A program that gives a logger, and starts its loops with a context that has none, reads why nothing happens.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	members, err := shard.New(logtest.Unreachable(t), "default", "loops", shard.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, members.Start)
	lines.Await(t, "members", "loops", "connection refused")
}
