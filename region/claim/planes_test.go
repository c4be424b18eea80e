// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Two central planes share one peer, do not know each other, and decide differently about its
// claim. The arbiters of both planes report the contradiction, and neither plane's arbiters write
// without end.
func TestTwoPlanesWithOnePeer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := regiontest.NewServer(regiontest.Options{Name: "other-plane"})
		t.Cleanup(other.Close)
		api, err := region.APIFor(other.Config())
		require.NoError(t, err)
		w.namespace(api, "kubecarrier-system")
		eu := w.ring.Server("eu")
		eu.Inject(regiontest.Fault{Verb: "patch", Times: -1, Do: regiontest.Delay(5 * time.Millisecond)})
		var mu sync.Mutex
		found := map[string][]ContradictEvent{}
		finds := func(who string) *Observer {
			return &Observer{Contradicted: func(_ context.Context, e ContradictEvent) {
				mu.Lock()
				defer mu.Unlock()
				found[who] = append(found[who], e)
			}}
		}
		w.start(w.api, Options{Observer: finds("one")})
		w.claim("us")
		passes(3 * time.Second)
		w.cluster("eu")
		passes(3 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		w.startIn(api, region.Fixed(w.conn("eu")), Options{Observer: finds("other")})
		eu.Reset()
		passes(time.Minute)
		// A write may be repeated until the cache shows it.
		require.LessOrEqual(t, writes(eu), 2*4*(corrections(time.Minute)+2), "of each, status and gate")
		uid := w.stored("eu", claims).GetUID()
		require.Equal(t, map[string][]ContradictEvent{
			"one":   {{Region: usEast1, Peer: "eu", UID: uid, Holder: "us", Theirs: "eu", By: FieldManager}},
			"other": {{Region: usEast1, Peer: "eu", UID: uid, Holder: "eu", Theirs: "us", By: FieldManager}},
		}, found)
		eu.Reset()
		passes(time.Hour)
		require.LessOrEqual(t, writes(eu), 8*(corrections(time.Hour)), "of each, and the other's response")
		require.Equal(t, "Bound us", w.statusOf("us"))

		// A new decision is written at once.
		w.unclaim("us")
		passes(3 * time.Second)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
		eu.Reset()
		passes(time.Hour)
		require.LessOrEqual(t, writes(eu), 8*(corrections(time.Hour)), "they differ only in the time")
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

// corrections returns how often an arbiter corrects a status within d if it is overwritten at once
// each time.
func corrections(d time.Duration) int {
	n := 1
	for t := (statementRecord{}); d >= 0; n++ {
		t.take(time.Time{}.Add(maxPause))
		d -= t.pause
		t.next = time.Time{}.Add(maxPause)
	}
	return n
}
