// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
)

// If a peer is unreachable, the Ring logs the error to Options.Logger, even if the context of Start
// has no logger.
func TestLogger(t *testing.T) {
	lines := logtest.New()
	credentials, err := region.FromConfig(&rest.Config{Host: "https://127.0.0.1:1"})
	require.NoError(t, err)
	source, err := region.FromPeers(region.Peer{Name: "eu-west", Credentials: credentials})
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{Logger: lines.Logger()})
	require.NoError(t, err)
	logtest.Run(t, ring.Start)
	lines.Await(t, "ring", "eu-west", "connection refused")
}
