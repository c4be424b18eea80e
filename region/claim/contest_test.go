// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// sweep runs a coordinator until stop is called, or the test ends.
func (w *world) sweep(c *fanout.Coordinator) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Start(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	w.t.Cleanup(stop)
	return stop
}

// TestWithoutAPlaneClaimsAppliedInTwoPeersAreSettled checks the same result as with a plane: the
// oldest claim is Bound, and the other names the holder. A coordinator adopts the Bound claim once
// the other claim is deleted.
func TestWithoutAPlaneClaimsAppliedInTwoPeersAreSettled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.coordinator()
		w.start(nil, Options{})
		w.claim("us")
		w.cluster("us")
		time.Sleep(time.Second)
		w.claim("eu")
		passes(10 * time.Second)
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Equal(t, "Pending Bound", w.gated("us"), "no operation has adopted the ServiceCluster yet")
		us, eu := w.status("us"), w.status("eu")
		require.Equal(t, us.Holder, eu.Holder, "both report the same time")
		require.Contains(t, eu.Conditions[0].Message, "peer us has held region us-east-1.loodse since ")

		defer w.sweep(c)()
		before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
		passes(time.Hour)
		require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")), "a coordinator leaves them alone")
		require.Empty(t, stageOf(w.stored("us", claims)))

		w.unclaim("eu")
		passes(5 * time.Minute)
		require.EqualValues(t, "Configured", stageOf(w.stored("us", claims)), "a single claim is adopted")
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"), "the guard")
	})
}

// TestWithoutAPlaneTheLoserFollows checks that the loser is Bound after the winner's claim is
// deleted and a coordinator has adopted the loser.
func TestWithoutAPlaneTheLoserFollows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.coordinator()
		w.start(nil, Options{})
		w.claim("us")
		time.Sleep(time.Second)
		w.claim("eu")
		passes(10 * time.Second)
		require.Equal(t, "Conflict us", w.statusOf("eu"))

		w.ring.Partition("us", true)
		passes(time.Hour)
		require.Equal(t, "Conflict us", w.statusOf("eu"), "an unreachable peer keeps its region")
		w.ring.Partition("us", false)
		passes(time.Minute)

		w.unclaim("us")
		passes(10 * time.Second)
		require.Equal(t, "Pending", w.statusOf("eu"), "no coordinator has adopted it")
		before := writes(w.ring.Server("us")) + writes(w.ring.Server("eu"))
		passes(time.Hour)
		require.Equal(t, before, writes(w.ring.Server("us"))+writes(w.ring.Server("eu")))
		defer w.sweep(c)()
		passes(5 * time.Minute)
		require.Equal(t, "Bound eu", w.statusOf("eu"))
	})
}

// TestWithoutAPlaneNobodyWinsWhileAPeerIsSilent checks that no claim wins while a peer is
// unreachable, because that peer may hold the region.
func TestWithoutAPlaneNobodyWinsWhileAPeerIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ap", "eu", "us")
		w.start(nil, Options{})
		w.ring.Partition("ap", true)
		w.claim("eu")
		w.claim("us")
		passes(time.Hour)
		require.Equal(t, "Pending", w.statusOf("eu"))
		require.Equal(t, "Pending", w.statusOf("us"))
		require.Contains(t, w.status("eu").Conditions[0].Message, "not decided yet")
		w.ring.Partition("ap", false)
		passes(2 * time.Minute)
		require.ElementsMatch(t, []string{"Bound", "Conflict"}, []string{
			strings.Fields(w.statusOf("eu"))[0], strings.Fields(w.statusOf("us"))[0],
		})
	})
}

// TestABidAsksTheServersAndNotItsCopies checks that a bid reads the servers: a claim that was
// applied a moment ago counts.
func TestABidAsksTheServersAndNotItsCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "ap", "eu", "us")
		first := w.claim("us")
		time.Sleep(time.Second)
		w.claim("eu")
		time.Sleep(time.Second)
		w.claim("ap")
		a, err := New(nil, w.ring, Options{})
		require.NoError(t, err)
		s := &regionState{key: usEast1, contacts: map[region.PeerName]contact{}}
		for _, p := range []region.PeerName{"ap", "eu", "us"} {
			a.peers[p] = &peer{name: p, conn: w.conn(p)}
			s.contacts[p] = fresh
		}
		bidFor := func(p region.PeerName) bool {
			obj := w.stored(p, claims)
			won, err := (&bid{arbiter: a, scene: s, since: noon, winner: candidate{
				peer: p, uid: obj.GetUID(), created: obj.GetCreationTimestamp().UTC(),
			}}).make(t.Context())
			require.NoError(t, err)
			return won
		}
		require.False(t, bidFor("eu"), "an older claim exists")
		require.Equal(t, "silence", w.statusOf("eu"))
		require.Equal(t, "silence", w.statusOf("ap"), "nothing is written before all claims are read")

		require.True(t, bidFor("us"))
		require.Equal(t, "Bound us", w.statusOf("us"))
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.False(t, bidFor("eu"), "it is in Conflict, and becomes Pending first")
		require.Equal(t, "Pending", w.statusOf("eu"))
		require.False(t, bidFor("eu"), "the other is Bound")
		require.Equal(t, "Bound us", w.statusOf("us"))

		// Only the claim that was read is bound.
		w.unclaim("us")
		won, err := (&bid{arbiter: a, scene: s, since: noon, winner: candidate{peer: "us", uid: first.GetUID()}}).make(t.Context())
		require.NoError(t, err)
		require.False(t, won)
	})
}

// TestWithoutAPlaneADecisionIsTakenBackAgainAndAgain checks that a decision which another client
// keeps overwriting is made again, after growing pauses.
func TestWithoutAPlaneADecisionIsTakenBackAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var found []ContradictEvent
		decided := 0
		w.claim("us")
		time.Sleep(time.Second)
		w.claim("eu")
		w.start(nil, Options{Observer: &Observer{
			Contradicted: func(_ context.Context, e ContradictEvent) {
				mu.Lock()
				defer mu.Unlock()
				found = append(found, e)
			},
			Decided: func(_ context.Context, e DecideEvent) {
				require.Equal(t, region.PeerName("us"), e.Holder)
				mu.Lock()
				defer mu.Unlock()
				decided++
			},
		}})
		passes(10 * time.Second)
		require.Equal(t, 1, decided)
		for _, p := range []region.PeerName{"eu", "us"} {
			w.ring.Server(p).Reset()
			slowly(w, p)
		}
		w.insists("us", claims, "RegionClaim", conflictWith("eu"))
		passes(time.Hour)
		require.LessOrEqual(t, decided, corrections(time.Hour)+2)
		require.GreaterOrEqual(t, decided, corrections(time.Hour)-2, "it is corrected every time")
		require.LessOrEqual(t, writes(w.ring.Server("us")), 8*corrections(time.Hour), "Pending and Bound, and the other client's writes")
		require.LessOrEqual(t, writes(w.ring.Server("eu")), 2*corrections(time.Hour), "the new time of the decision")
		require.Equal(t, "Conflict us", w.statusOf("eu"))
		require.Len(t, found, 1)
		require.Equal(t, stray, found[0].By)
	})
}

// TestWithoutAPlaneThroughAccidents runs two arbiters and a coordinator, while users apply and
// delete claims in any peer. Two peers never store a Bound claim at the same time. In the end, if
// there is a claim, one claim is Bound, and the statuses of all claims name its peer.
func TestWithoutAPlaneThroughAccidents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 2))
				peers := []region.PeerName{"a", "b", "c"}
				w := newWorld(t, peers...)
				c := w.coordinator()
				applied := func(p region.PeerName) bool {
					obj := w.stored(p, claims)
					return obj != nil && (stageOf(obj) == "" || stageOf(obj) == "Configured")
				}
				var log []string
				check := func() {
					t.Helper()
					var bound []string
					for _, p := range peers {
						if obj := w.stored(p, claims); obj != nil && !boundSince(obj, p).IsZero() {
							bound = append(bound, string(p))
						}
					}
					require.LessOrEqual(t, len(bound), 1, "%v are Bound after %s", bound, strings.Join(log, ", "))
				}
				stops := []func(){w.start(nil, Options{}), w.start(nil, Options{}), w.sweep(c)}
				cut := map[region.PeerName]bool{}
				for range 20 {
					p := peers[random.IntN(len(peers))]
					var what string
					switch n := random.IntN(10); {
					case n < 5 && !cut[p] && w.stored(p, claims) == nil:
						what = "claimed in " + string(p)
						w.claim(p)
					case n < 7 && !cut[p] && applied(p):
						what = "released in " + string(p)
						w.unclaim(p)
					case n < 9:
						cut[p] = !cut[p]
						what = fmt.Sprintf("%s cut off %v", p, cut[p])
						w.ring.Partition(p, cut[p])
					default: // an arbiter restarts
						i := random.IntN(2)
						what = fmt.Sprintf("arbiter %d begins anew", i)
						stops[i]()
						stops[i] = w.start(nil, Options{})
					}
					log = append(log, what)
					for range 3 { // requests arrive out of order
						w.ring.Server(peers[random.IntN(len(peers))]).Inject(regiontest.Fault{
							Verb: []string{"get", "patch"}[random.IntN(2)],
							Do:   regiontest.Delay(time.Duration(random.IntN(int(3 * time.Second)))),
						})
					}
					for range random.IntN(30) {
						time.Sleep(time.Duration(random.IntN(int(time.Second))))
						check()
					}
				}
				claimed := false
				for _, p := range peers {
					w.ring.Server(p).Reset()
					w.ring.Partition(p, false)
				}
				passes(15 * time.Minute)
				check()
				holder := ""
				for _, p := range peers {
					claimed = claimed || applied(p)
					if obj := w.stored(p, claims); obj != nil && !boundSince(obj, p).IsZero() {
						holder = string(p)
					}
				}
				require.Equal(t, claimed, holder != "", strings.Join(log, ", "))
				for _, p := range peers {
					if said := w.statusOf(p); said != "none" && claimed {
						require.Contains(t, said, " "+holder, strings.Join(log, ", "))
					}
				}
				for _, stop := range stops {
					stop()
				}
			})
		})
	}
}
