// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

var _ router.Resolver = (*Resolver)(nil)

// A Resolver returns the same peers as a Source of the same plane publishes.
func TestResolverSaysWhatTheSourceSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.register("eu", "us")
		p := w.start(PeersOptions{})
		w.claim(w.servers["eu"], "loodse", "one", "Bound")
		w.claim(w.servers["us"], "loodse", "two", "Bound")
		pass(2 * time.Second)
		api, err := region.APIFor(w.plane.Config())
		require.NoError(t, err)
		r, err := NewResolver(api)
		require.NoError(t, err)
		for k, owner := range p.ring.Snapshot().Regions() {
			peer, err := r.Resolve(t.Context(), k)
			require.NoError(t, err)
			require.Equal(t, owner.Name, peer)
		}
		peer, err := r.Resolve(t.Context(), region.Key{Provider: "loodse", Name: "two"})
		require.NoError(t, err)
		require.Equal(t, region.PeerName("us"), peer)
		_, err = r.Resolve(t.Context(), region.Key{Provider: "loodse", Name: "three"})
		require.ErrorIs(t, err, region.ErrUnknownRegion)
		w.plane.Partition(true)
		_, err = r.Resolve(t.Context(), region.Key{Provider: "loodse", Name: "two"})
		require.Error(t, err)
		require.NotErrorIs(t, err, region.ErrUnknownRegion)
		p.stop()
		_, err = NewResolver(nil)
		require.Error(t, err)
	})
}
