// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// Start logs why it makes no progress to the Logger of the options, also if its context has no logger.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	t.Run("Agent", func(t *testing.T) {
		lines := logtest.New()
		a, err := targets.NewAgent(api, api, syncer.Options{Target: "cluster-1", Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, a.Start)
		lines.Await(t, "agent", "synctargets", "connection refused")
	})
	t.Run("Controller", func(t *testing.T) {
		lines := logtest.New()
		c, err := targets.New(api, targets.Options{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, c.Start)
		lines.Await(t, "targets", "synctargets", "connection refused")
	})
}
