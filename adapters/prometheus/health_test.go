// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

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

// expiring is a Directory whose peers have credentials that expire.
type expiring struct{ *regiontest.Ring }

// jwt is a token that is valid from 2033-05-18 to 2065-01-24, with an invalid signature.
const jwt = "e30.eyJpYXQiOjIwMDAwMDAwMDAsImV4cCI6MzAwMDAwMDAwMH0.e30"

func (e expiring) Conn(peer region.PeerName) (*region.Conn, error) {
	creds, err := region.FromConfig(&rest.Config{Host: "https://peer.test", BearerToken: jwt})
	if err != nil {
		return nil, err
	}
	return region.NewConn(region.Peer{Name: peer, Credentials: creds}, region.ConnOptions{})
}

func TestHealthHasTheExpiryOfCredentials(t *testing.T) {
	ring := regiontest.NewRing("eu")
	defer ring.Close()
	_, registry := newMetrics(t, Options{Directory: func() region.Directory { return ring }})
	require.NotContains(t, exposition(t, registry), "credentials", "the tokens of peers in memory show no expiry")

	m, _ := newMetrics(t, Options{Directory: func() region.Directory { return expiring{ring} }})
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(`
# HELP atoll_peer_credentials_expiry_timestamp_seconds When the first of the credentials for the peer expires; not for credential plugins, which renew them.
# TYPE atoll_peer_credentials_expiry_timestamp_seconds gauge
atoll_peer_credentials_expiry_timestamp_seconds{peer="eu"} 3e+09
# HELP atoll_peer_credentials_issued_timestamp_seconds Since when the credentials for the peer that expire first are valid.
# TYPE atoll_peer_credentials_issued_timestamp_seconds gauge
atoll_peer_credentials_issued_timestamp_seconds{peer="eu"} 2e+09
`), "atoll_peer_credentials_expiry_timestamp_seconds", "atoll_peer_credentials_issued_timestamp_seconds"))
}
