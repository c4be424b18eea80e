// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestARegionClaimedInTwoPeersEndsBoundOnceAndInConflictOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.start(w.api, Options{})
		w.claim("us")
		passes(200 * time.Millisecond)
		require.Equal(t, "Pending", w.said("us"))
		w.claim("eu")
		passes(3 * time.Second)
		require.ElementsMatch(t, []string{"Bound us", "Conflict us"}, []string{w.said("us"), w.said("eu")})

		w.plane.Reset()
		w.ring.Server("eu").Reset()
		w.ring.Server("us").Reset()
		passes(30 * time.Minute)
		require.Zero(t, writes(w.plane)+writes(w.ring.Server("eu"))+writes(w.ring.Server("us")), "steady state")
		for _, r := range w.plane.Requests() {
			require.NotEqual(t, "get", r.Verb)
		}
	})
}
