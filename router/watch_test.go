// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

func TestWatchTellsOfRegions(t *testing.T) {
	d := newDirectory(t, newServer(t, "a"), newServer(t, "b"))
	us := region.Key{Provider: "loodse", Name: "us-east-1"}
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	r := newRouter(t, d, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	next, stop := iter.Pull(r.Watch(ctx))
	defer stop()
	for _, regions := range []map[region.Key]region.PeerName{{eu: "a"}, {eu: "a", us: "a"}, {eu: "b", us: "a"}, {us: "a"}, {}} {
		d.serve(t, regions)
		want := []Route{}
		for _, k := range []region.Key{eu, us} {
			if peer, ok := regions[k]; ok {
				want = append(want, Route{Region: k, Peer: peer})
			}
		}
		got, ok := next()
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, want, r.Routes())
	}
	cancel()
	_, ok := next()
	require.False(t, ok)
	require.Zero(t, r.followers)
}
