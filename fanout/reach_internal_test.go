// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// TestHastily covers the time limits of calls to a peer that fails its probes.
func TestHastily(t *testing.T) {
	for _, tc := range []struct{ ago, whole, want time.Duration }{
		{0, 10 * time.Second, 0},
		{reserve - 1, 10 * time.Second, 0},
		{reserve, 10 * time.Second, hasty},
		{time.Hour, 10 * time.Second, hasty},
		{reserve, time.Millisecond, time.Millisecond},
		{reserve - 1, time.Millisecond, 0},
	} {
		require.Equal(t, tc.want, hastily(tc.ago, tc.whole), "%+v", tc)
	}
}

// Only calls to a peer that fails its probes get the short limit. After such a call has timed out,
// no call to the peer is allowed for the duration reserve.
func TestReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("eu", "us")
		t.Cleanup(ring.Close)
		var peers []region.Peer
		for _, name := range []region.PeerName{"eu", "us"} {
			creds, err := region.FromConfig(ring.Server(name).Config())
			require.NoError(t, err)
			peers = append(peers, region.Peer{Name: name, Credentials: creds})
		}
		source, err := region.FromPeers(peers...)
		require.NoError(t, err)
		probed, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = probed.Start(ctx) })
		t.Cleanup(func() {
			cancel()
			wg.Wait()
		})
		<-probed.Synced()
		synctest.Wait()

		const whole = 10 * time.Second
		cs := &clusters{directory: probed, opts: &Options{CallTimeout: whole}}
		begins := func(peer region.PeerName, want time.Duration) {
			t.Helper()
			limit, err := cs.reach.begin(cs, peer)
			require.NoError(t, err)
			require.Equal(t, want, limit)
		}
		begins("us", whole)
		begins("nobody", whole)
		begins("", whole) // the log
		cs.reach.end("us", true)
		begins("us", whole) // its probes succeed

		ring.Server("us").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		time.Sleep(2 * time.Minute)
		begins("eu", whole)
		begins("us", hasty)
		cs.reach.end("us", true)
		_, err = cs.reach.begin(cs, "us")
		require.ErrorIs(t, err, region.ErrUnavailable)
		begins("eu", whole)
		time.Sleep(reserve)
		begins("us", hasty)
		cs.reach.end("us", true)
		cs.reach.end("us", false) // another call that was under way got an answer
		begins("us", hasty)
		cs.opts.CallTimeout = time.Millisecond
		begins("us", time.Millisecond)
		cs.opts.CallTimeout = whole

		cs.reach.end("us", true)
		ring.Server("us").Reset()
		time.Sleep(2 * time.Minute)
		begins("us", whole)
	})
}
