// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/servicecluster"
)

// If a peer is unreachable, the Controller logs the error to Options.Logger, even if the context of
// Start has no logger.
func TestLogger(t *testing.T) {
	t.Parallel()
	lines := logtest.New()
	ring := regiontest.NewRing("eu-west")
	defer ring.Close()
	ring.Partition("eu-west", true)
	controller, err := servicecluster.New(ring, servicecluster.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, controller.Start)
	lines.Await(t, "servicecluster", "eu-west", "connection refused")
}
