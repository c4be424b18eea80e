// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The health of a peer that has left is no longer collected.
func TestHealthHasThePresentPeers(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	var directory region.Directory
	m, registry := newMetrics(t, Options{Directory: func() region.Directory { return directory }})
	require.Empty(t, exposition(t, registry))

	directory = ring
	const header = "# HELP atoll_peer_healthy 1 if the peer answers its probes.\n# TYPE atoll_peer_healthy gauge\n"
	// The health of peers in memory is Unknown, because a regiontest.Ring does not probe them.
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(header+"atoll_peer_healthy{peer=\"eu\"} 0\natoll_peer_healthy{peer=\"us\"} 0\n")))
	require.NoError(t, ring.Leave("eu"))
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(header+"atoll_peer_healthy{peer=\"us\"} 0\n")))
}
