// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/syncer"
)

// Start logs why it makes no progress to the Logger of the options, also if its context has no logger.
func TestLogger(t *testing.T) {
	api := logtest.Unreachable(t)
	t.Run("Syncer", func(t *testing.T) {
		lines := logtest.New()
		s, err := syncer.New(api, api, syncer.Options{Target: "cluster-1", Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, s.Start)
		lines.Await(t, "syncer", "cluster-1", "connection refused")
	})
	t.Run("Agent", func(t *testing.T) {
		lines := logtest.New()
		a, err := syncer.NewAgent(api, api, syncer.Options{Target: "cluster-1", Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, a.Start)
		lines.Await(t, "agent", "synctargets", "connection refused")
	})
	t.Run("Targets", func(t *testing.T) {
		lines := logtest.New()
		s, err := syncer.NewTargets(api, syncer.TargetsOptions{Logger: lines.Logger()})
		require.NoError(t, err)
		logtest.Run(t, s.Start)
		lines.Await(t, "targets", "synctargets", "connection refused")
	})
}
