// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// TestTheRightsSufficeAndAreUsed checks that no request is forbidden and that every right is used.
func TestTheRightsSufficeAndAreUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		grants := rightstest.New(rights.ServiceClusters().Rules...)
		server := regiontest.NewServer(regiontest.Options{Tokens: rightstest.Tokens(), Authorize: grants.Authorize})
		t.Cleanup(server.Close)
		crd, err := config.CRD("serviceclusters.kubecarrier.io")
		require.NoError(t, err)
		require.NoError(t, server.AddCRD(crd))
		ring := regiontest.NewRing()
		t.Cleanup(ring.Close)
		require.NoError(t, ring.Join("us", server))
		as := func(token string) *region.Conn {
			c := server.Config()
			c.BearerToken = token
			credentials, err := region.FromConfig(c)
			require.NoError(t, err)
			conn, err := region.NewConn(region.Peer{Name: "us", Credentials: credentials}, region.ConnOptions{})
			require.NoError(t, err)
			return conn
		}
		w := &world{t: t, ring: ring, probe: newFakeProbe(), admin: as(rightstest.Admin)}
		w.create(w.of("us"), "v1", "namespaces", "Namespace", "", account, nil)
		c, err := New(region.Fixed(as(rightstest.Program)), Options{Probe: w.probe.probe})
		require.NoError(t, err)
		w.run(c.Start)
		w.secret("us", "kubeconfig", "good")
		w.apply("us", "a", "kubeconfig")
		passes(time.Second)
		w.commit("us", "a")
		w.bind("us", "a")
		passes(time.Minute)
		require.Equal(t, "Ready Complete Answered", w.shows("us", "a"))
		require.Empty(t, grants.Denied(server.Requests()))
		require.Empty(t, grants.Unused())
	})
}
