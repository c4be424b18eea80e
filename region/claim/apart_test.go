// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// unreached is a server that an arbiter cannot reach and others can.
func unreached(t *testing.T) *regiontest.Server {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	s.Partition(true)
	return s
}

// TestArbitersThatReachDifferentServersDoNotFight over what to tell a claim.
func TestArbitersThatReachDifferentServersDoNotFight(t *testing.T) {
	t.Run("one has no plane", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.plane.Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(503)})
			api, err := region.APIFor(unreached(t).Config())
			require.NoError(t, err)
			w.start(w.api, Options{})
			w.start(api, Options{})
			passes(20 * time.Second)
			w.claim("us")
			before := writes(w.ring.Server("us"))
			passes(time.Hour)
			require.Equal(t, "Pending", w.said("us"))
			require.LessOrEqual(t, writes(w.ring.Server("us"))-before, 2)
			w.plane.Reset()
			passes(2 * time.Minute)
			require.Equal(t, "Bound us", w.said("us"))
			before = writes(w.ring.Server("us"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us")))
		})
	})
	t.Run("one does not reach the holder", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.start(w.api, Options{})
			w.startIn(w.api, w.without(t, "us"), Options{})
			w.bindTo("us", "eu")
			before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))
			require.Equal(t, "Bound us", w.said("us"))
			require.Equal(t, "Conflict us", w.said("eu"))
		})
	})
	t.Run("no plane, and one does not reach the holder", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			c := w.coordinator()
			w.startIn(nil, w.without(t, "us"), Options{})
			_, err := c.Add(t.Context(), w.object("RegionClaim", name), fanout.AddOptions{Target: "us"})
			require.NoError(t, err)
			passes(time.Minute)
			require.Equal(t, "Pending", w.said("eu"))
			w.start(nil, Options{})
			passes(time.Minute)
			require.Equal(t, "Conflict us", w.said("eu"))
			before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
			passes(time.Hour)
			require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))
		})
	})
}

// without is the world's ring as one sees it who cannot reach p.
func (w *world) without(t *testing.T, p region.PeerName) region.Directory {
	t.Helper()
	var conns []*region.Conn
	for q := range w.ring.Snapshot().Peers() {
		conn := w.conn(q.Name)
		if q.Name == p {
			credentials, err := region.FromConfig(unreached(t).Config())
			require.NoError(t, err)
			conn, err = region.NewConn(region.Peer{Name: p, Credentials: credentials}, region.ConnOptions{})
			require.NoError(t, err)
		}
		conns = append(conns, conn)
	}
	return region.Fixed(conns...)
}
