// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

func TestExplain(t *testing.T) {
	p := &plane{peer: "a"}
	explain := func(t *testing.T, r *Router, want string) Explanation {
		t.Helper()
		e := r.Explain(t.Context(), eu)
		require.Equal(t, strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n"), e.String())
		return e
	}
	bubble(t, p, Options{Cache: &FileCache{routes: []CachedRoute{{Region: us, Peer: "b"}}}}, func(t *testing.T, d *directory, r *Router) {
		creds, err := region.FromConfig(testConfig())
		require.NoError(t, err)
		d.conns["a"], err = region.NewConn(region.Peer{Name: "a", Credentials: creds}, region.ConnOptions{})
		require.NoError(t, err)
		delete(d.conns, "b")
		d.serve(t, nil)
		p.say("", region.ErrUnknownRegion)
		e := explain(t, r, `
			eu-west-1.loodse: region eu-west-1.loodse: lookup: unknown region (1 known: us-east-1.loodse; to add it, list it under the regions of the peer that serves it)
			  source: none of its 1 peers lists the region
			  cache: nothing
			  resolver: last answer: unknown region; asked again not before 2000-01-01T00:00:05Z
		`)
		require.Equal(t, []Layer{FromSource, FromCache, FromResolver}, e.Layers)
		require.ErrorIs(t, e.Err, region.ErrUnknownRegion)

		p.say("a", nil)
		time.Sleep(10 * time.Second)
		e = explain(t, r, `
			eu-west-1.loodse: peer a, by the resolver, 0s old
			  source: none of its 1 peers lists the region
			  cache: nothing
			  resolver: peer a, as it answered at 2000-01-01T00:00:10Z; asked again 1m0s after
			  peer a: Unknown, credentials of generation 1
			  requests: 0 under way, 0 waiting, 0 streams
		`)
		require.Equal(t, Route{Region: eu, Peer: "a", From: FromResolver, At: time.Now()}, e.Route)

		d.conns["b"] = nil
		d.serve(t, map[region.Key]region.PeerName{eu: "b"})
		delete(d.conns, "b")
		e = explain(t, r, `
			eu-west-1.loodse: peer b, by the source
			  source: peer b lists the region; nothing else is asked
			  peer b: no connection: unknown peer
			  moved from a to b at 2000-01-01T00:00:10Z, by the source
			  requests: 0 under way, 0 waiting, 0 streams
		`)
		require.Equal(t, []Layer{FromSource}, e.Layers)
		require.ErrorIs(t, e.Connection, region.ErrUnknownPeer)
	})
}

func TestExplainBeforeTheFirstSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, err := region.NewRing(silent{}, region.Options{})
		require.NoError(t, err)
		r := newRouter(t, ring, Options{Cache: &FileCache{routes: []CachedRoute{{Region: eu, Peer: "a", Source: true, At: time.Now().Add(-time.Hour)}}}})
		e := r.Explain(t.Context(), eu)
		require.Zero(t, e.Generation)
		require.Equal(t, `eu-west-1.loodse: peer a, by the cache, 1h0m0s old
  source: it has listed nothing yet
  cache: peer a, as an earlier run knew it at 1999-12-31T23:00:00Z
  resolver: not configured
  peer a: no connection: peer a: connect: unknown peer
  requests: 0 under way, 0 waiting, 0 streams
`, e.String())
	})
}

// The Router remembers the last maxMoves moves of a region that keeps moving. It remembers no move of a region that has
// left, however many regions join, move and leave.
func TestWhatIsRememberedOfMoves(t *testing.T) {
	d := newDirectory(t)
	d.conns["a"], d.conns["b"] = nil, nil
	r := newRouter(t, d, Options{})
	for i := range 4 * maxMoves {
		d.serve(t, map[region.Key]region.PeerName{eu: []region.PeerName{"a", "b"}[i%2]})
		r.Routes()
	}
	moves := r.Explain(t.Context(), eu).Moves
	require.Len(t, moves, maxMoves)
	require.Equal(t, region.PeerName("b"), moves[maxMoves-1].To)
	for i := range 50 { // many regions: each of them joins, moves and leaves
		k := region.Key{Provider: "loodse", Name: fmt.Sprintf("r-%d", i)}
		for _, peer := range []region.PeerName{"a", "b"} {
			d.serve(t, map[region.Key]region.PeerName{k: peer})
			r.Routes()
		}
		require.Len(t, r.moves, 1, "a region that has left leaves nothing behind")
		require.Len(t, r.moves[k], 1)
	}
	d.serve(t, nil)
	r.Routes()
	require.Empty(t, r.moves)
}

func TestLayersHaveNames(t *testing.T) {
	for layer, want := range map[Layer]string{FromSource: "source", FromResolver: "resolver", FromCache: "cache", 7: "Layer(7)"} {
		text, err := layer.MarshalText()
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}
