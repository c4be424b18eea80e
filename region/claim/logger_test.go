// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// If a peer is unreachable, the Arbiter logs the error to Options.Logger, even if the context of
// Start has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	ring := regiontest.NewRing("eu-west")
	defer ring.Close()
	ring.Partition("eu-west", true)
	arbiter, err := claim.New(nil, ring, claim.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, arbiter.Start)
	lines.Await(t, "arbiter", "eu-west", "connection refused")
}
