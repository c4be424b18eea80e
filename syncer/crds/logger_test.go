// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// Start logs why it makes no progress to the Logger of the options, also if its context has no logger.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	list := func() []crds.Target { return []crds.Target{{Name: "cluster-1", API: api}} }
	t.Run("Controller", func(t *testing.T) {
		lines := logtest.New()
		c, err := crds.New(crds.Options{Upstream: api, Targets: list, Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, c.Start)
		lines.Await(t, "crds", "connection refused")
	})
	t.Run("Fleet", func(t *testing.T) {
		lines := logtest.New()
		all, err := targets.New(api, targets.Options{})
		require.NoError(t, err)
		f, err := crds.NewFleet(api, all, crds.Options{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, f.Start)
		lines.Await(t, "crds", "connection refused")
	})
}
