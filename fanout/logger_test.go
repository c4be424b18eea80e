// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

// Start logs that a peer is unreachable to the logger in Options, also if the context of Start has
// no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	ring := regiontest.NewRing("eu-west")
	defer ring.Close()
	ring.Partition("eu-west", true)
	journal, err := wal.Open(filepath.Join(t.TempDir(), "operations.db"), wal.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, journal.Close()) }()
	ops, err := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds(), Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, ops.Start)
	lines.Await(t, "fanout", "eu-west", "connection refused")
}
