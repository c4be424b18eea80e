// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

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

// If an API server is unreachable, each loop logs the error to the Logger in its options, even if
// the context of Start has no Logger.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	ring := regiontest.NewRing("eu-west")
	defer ring.Close()
	ring.Partition("eu-west", true)
	t.Run("Controller", func(t *testing.T) {
		lines := logtest.New()
		c, err := account.NewController(ring, account.ControllerOptions{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, c.Start)
		lines.Await(t, "accounts", "connection refused")
	})
	t.Run("Replicator", func(t *testing.T) {
		lines := logtest.New()
		journal, err := wal.Open(filepath.Join(t.TempDir(), "operations.db"), wal.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, journal.Close()) }()
		ops, err := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds()})
		require.NoError(t, err)
		r, err := account.NewReplicator(api, ring, ops, account.Options{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, r.Start)
		lines.Await(t, "replicator", "connection refused")
	})
	t.Run("Catalog", func(t *testing.T) {
		lines := logtest.New()
		c, err := account.NewCatalog(api, ring, account.CatalogOptions{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, c.Start)
		lines.Await(t, "catalog", "connection refused")
	})
}
