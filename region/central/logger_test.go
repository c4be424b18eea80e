// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
)

// If the plane is unreachable, each loop logs the error to the Logger in its options, even if its
// context has no logger.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	t.Run("Source", func(t *testing.T) {
		lines := logtest.New()
		source, err := central.New(api, central.Options{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, func(ctx context.Context) error { return source.Run(ctx, func(*region.Snapshot) {}) })
		lines.Await(t, "source", "peers", "connection refused")
	})
	t.Run("Peers", func(t *testing.T) {
		lines := logtest.New()
		source, err := central.New(api, central.Options{})
		require.NoError(t, err)
		peers, err := central.NewPeers(source, region.Fixed(), central.PeersOptions{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, peers.Start)
		lines.Await(t, "peers", "connection refused")
	})
	t.Run("Master", func(t *testing.T) {
		lines := logtest.New()
		master, err := central.NewMaster(api, func(ctx context.Context) error { <-ctx.Done(); return nil }, central.MasterOptions{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, master.Start)
		lines.Await(t, "master", "connection refused")
	})
}
