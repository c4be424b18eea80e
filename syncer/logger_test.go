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
}
