// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// TestTwoArbitersThroughAccidents runs two arbiters through random sequences of claims, deletions
// and restarts, while peers and plane become unreachable. Two peers never store a Bound claim at
// the same time. In the end, if there is a claim, one claim is Bound, and the statuses of all
// claims name its peer.
func TestTwoArbitersThroughAccidents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				peers := []region.PeerName{"a", "b", "c"}
				w := newWorld(t, peers...)
				bound := func() []string {
					var all []string
					for _, p := range peers {
						if obj := w.stored(p, claims); obj != nil && !boundSince(obj, p).IsZero() {
							all = append(all, string(p))
						}
					}
					return all
				}
				var log []string
				check := func() {
					t.Helper()
					require.LessOrEqual(t, len(bound()), 1, "%v are Bound after %s", bound(), strings.Join(log, ", "))
				}
				stops := []func(){w.start(w.api, Options{}), w.start(w.api, Options{})}
				cut := map[region.PeerName]bool{}
				for range 40 {
					p := peers[random.IntN(len(peers))]
					var what string
					switch n := random.IntN(10); {
					case n < 4 && !cut[p] && w.stored(p, claims) == nil:
						what = "claimed in " + string(p)
						w.claim(p)
					case n < 6 && !cut[p] && w.stored(p, claims) != nil:
						what = "released in " + string(p)
						w.unclaim(p)
					case n < 8:
						cut[p] = !cut[p]
						what = fmt.Sprintf("%s cut off %v", p, cut[p])
						w.ring.Partition(p, cut[p])
					case n == 8:
						off := random.IntN(2) == 0
						what = fmt.Sprintf("plane cut off %v", off)
						w.plane.Partition(off)
					default:
						i := random.IntN(len(stops))
						what = fmt.Sprintf("arbiter %d begins anew", i)
						stops[i]()
						stops[i] = w.start(w.api, Options{})
					}
					log = append(log, what)
					for range random.IntN(20) {
						time.Sleep(time.Duration(random.IntN(int(time.Second))))
						check()
					}
				}
				w.plane.Partition(false)
				claimed := false
				for _, p := range peers {
					w.ring.Partition(p, false)
					claimed = claimed || w.stored(p, claims) != nil
				}
				passes(3 * time.Minute)
				check()
				require.Equal(t, claimed, len(bound()) == 1, strings.Join(log, ", "))
				for _, p := range peers {
					if said := w.statusOf(p); said != "none" && claimed {
						require.Contains(t, said, " "+bound()[0], strings.Join(log, ", "))
					}
				}
			})
		})
	}
}
