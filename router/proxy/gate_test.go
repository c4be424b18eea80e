// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

func flowOf(r, c int) flow {
	return flow{region.Key{Provider: "loodse", Name: fmt.Sprint("r", r)}, fmt.Sprint("c", c)}
}

// The test takes and gives places for random flows. The shares count exactly, stay within the bounds, and have no
// entries once all places are given back. A flow whose caller and region have no place is refused only if the bound of
// all requests is used up.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bounds{rapid.IntRange(1, 40).Draw(t, "all"), rapid.IntRange(1, 20).Draw(t, "region"), rapid.IntRange(1, 20).Draw(t, "caller")}
		s := newShares(b)
		taken := map[flow]int{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			f := flowOf(rapid.IntRange(0, 4).Draw(t, "r"), rapid.IntRange(0, 4).Draw(t, "c"))
			switch f.region.Name {
			case "r0":
				f.region = region.Key{}
			case "r1":
				f.region = everywhere
			}
			if rapid.IntRange(0, 2).Draw(t, "give") == 0 {
				if taken[f] > 0 {
					taken[f]--
					s.give(f)
				}
				continue
			}
			held := s.bindingBound(f)
			if held != free {
				// If the caller and the region of a flow have no place, the flow is refused only if the bound of all
				// requests is used up.
				if taken[f] == 0 && s.callers[f.caller] == 0 && s.regions[f.region] == 0 && held != byAll {
					t.Fatalf("%v has nothing of %+v, and is held by %d", f, s, held)
				}
				continue
			}
			s.take(f)
			taken[f]++
		}
		all, regions, callers := 0, map[region.Key]int{}, map[string]int{}
		for f, n := range taken {
			all, regions[f.region], callers[f.caller] = all+n, regions[f.region]+n, callers[f.caller]+n
			require.Equal(t, n, s.flows[f])
			if f.region != (region.Key{}) {
				require.LessOrEqual(t, n, (b.region+1)/2, "one caller has more than half of a region")
			}
		}
		require.Equal(t, all, s.all)
		require.LessOrEqual(t, all, b.all)
		for k, n := range regions {
			if k != (region.Key{}) {
				require.Equal(t, n, s.regions[k])
				require.LessOrEqual(t, n, min(s.ofRegion(k), (b.all+1)/2))
			}
		}
		for c, n := range callers {
			require.Equal(t, n, s.callers[c])
			require.LessOrEqual(t, n, min(b.caller, (b.all+1)/2))
		}
		for f, n := range taken {
			for range n {
				s.give(f)
			}
		}
		require.Equal(t, newShares(b), s, "a flow without places leaves no entry")
	})
}

// Each of n greedy flows takes as many places as it can, for n from 1 to 19. The flows leave about 1/(n+1) of all
// places free, and a later flow gets places of this part at once.
func TestSharesOfTheGreedy(t *testing.T) {
	for greedy := 1; greedy < 20; greedy++ {
		s := newShares(bounds{400, 100, 100})
		for more := true; more; {
			more = false
			for n := range greedy {
				if f := flowOf(n, n); s.bindingBound(f) == free {
					s.take(f)
					more = true
				}
			}
		}
		least := 400/(greedy+1) - 1
		require.GreaterOrEqual(t, 400-s.all, least, "left by %d", greedy)
		late := flowOf(100, 100)
		for range min(50, least) / 2 {
			require.Equal(t, free, s.bindingBound(late), "beside %d", greedy)
			s.take(late)
		}
	}
}

// Random requests enter the gate, stay and leave, or stop waiting. Whenever a request has entered, the gate's counts
// are within the bounds. No request waits longer than the gate's patience, and in the end the gate is empty.
func TestGate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := bounds{rapid.IntRange(2, 12).Draw(rt, "all"), rapid.IntRange(1, 8).Draw(rt, "region"), rapid.IntRange(1, 8).Draw(rt, "caller")}
		waiting := rapid.IntRange(0, 20).Draw(rt, "waiting")
		type request struct {
			f                     flow
			after, stays, givesUp int
		}
		requests := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) request {
			return request{
				flowOf(rapid.IntRange(0, 3).Draw(t, "r"), rapid.IntRange(0, 3).Draw(t, "c")),
				rapid.IntRange(0, 20).Draw(t, "after"), rapid.IntRange(1, 15).Draw(t, "stays"), rapid.IntRange(1, 30).Draw(t, "givesUp"),
			}
		}), 1, 40).Draw(rt, "requests")
		synctest.Test(t, func(t *testing.T) {
			const patience = 10
			g := newGate(b, bounds{waiting, waiting, waiting}, patience*time.Second)
			var wg sync.WaitGroup
			for _, r := range requests {
				wg.Go(func() {
					time.Sleep(time.Duration(r.after) * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.givesUp)*time.Second)
					defer cancel()
					began := time.Now()
					err := g.enter(ctx, r.f)
					waited := time.Since(began)
					if waited > patience*time.Second {
						t.Errorf("%v waits %s", r.f, waited)
					}
					if err != nil {
						return
					}
					g.mu.Lock()
					if g.busy.all > b.all || g.busy.regions[r.f.region] > b.region || g.busy.callers[r.f.caller] > b.caller || g.waiting.all > waiting {
						t.Errorf("%+v of %+v", g.busy, b)
					}
					g.mu.Unlock()
					time.Sleep(time.Duration(r.stays) * time.Second)
					g.leave(r.f)
				})
			}
			wg.Wait()
			requireEmpty(t, g)
		})
	})
}

// Two flows have many waiters each. The queues take turns: the gate admits one request of each flow in turn.
func TestLinesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(bounds{100, 100, 2}, bounds{1000, 1000, 1000}, time.Hour)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var order []string
		for _, f := range []flow{flowOf(0, 0), flowOf(1, 0)} { // one caller, who may have two requests at a time
			for range 10 {
				wg.Go(func() {
					if !assertNoError(t, g.enter(t.Context(), f)) {
						return
					}
					time.Sleep(time.Second)
					mu.Lock()
					order = append(order, f.region.Name)
					mu.Unlock()
					g.leave(f)
				})
				synctest.Wait()
			}
		}
		wg.Wait()
		for n := 2; n < 20; n += 2 {
			require.NotEqual(t, order[n], order[n+1], "%v", order)
		}
		requireEmpty(t, g)
	})
}

func assertNoError(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// A waiter whose time is up leaves its queue, and the refusal names the bound that it waited for.
func TestRefusalsNameTheBound(t *testing.T) {
	for _, tt := range []struct {
		bounds bounds
		taken  []flow
		want   string
	}{
		{bounds{100, 4, 100}, []flow{flowOf(0, 0), flowOf(0, 0)}, "too many of your requests are under way to this region"},
		{bounds{100, 100, 2}, []flow{flowOf(1, 0), flowOf(2, 0)}, "too many of your requests are under way here"},
		{bounds{100, 2, 100}, []flow{flowOf(0, 1), flowOf(0, 2)}, "too many requests are under way to this region"},
		{bounds{2, 100, 100}, []flow{flowOf(1, 1), flowOf(2, 2)}, "too many requests are under way here"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(tt.bounds, bounds{1, 1, 1}, time.Minute)
			for _, f := range tt.taken {
				g.busy.take(f)
			}
			began := time.Now()
			err := g.enter(t.Context(), flowOf(0, 0))
			require.Equal(t, refusal{http.StatusTooManyRequests, tt.want + "; try again later"}, err)
			require.Equal(t, time.Minute, time.Since(began))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, g.enter(ctx, flowOf(0, 0)), context.DeadlineExceeded)
			for _, f := range tt.taken {
				g.leave(f)
			}
			requireEmpty(t, g)
		})
	}
}

// By default, the requests of an impersonated user count as one flow whatever the user's groups are, and each token
// counts as a flow of its own. Options.Flow can count all tokens as one flow.
func TestFlowsOfCallers(t *testing.T) {
	alice := router.User{Name: "alice"}
	grouped := router.User{Name: "alice", Groups: []string{"dev"}, Extra: map[string][]string{"session": {"1"}}}
	require.Equal(t, router.Impersonate(alice).Flow(), router.Impersonate(grouped).Flow())
	require.NotEqual(t, router.Impersonate(alice).Flow(), router.Impersonate(router.User{Name: "bob"}).Flow())
	require.NotEqual(t, router.Caller("a").Flow(), router.Caller("b").Flow())
	require.NotContains(t, router.Caller("secret").Flow(), "secret")

	limits := Limits{RequestsPerRegion: 2, Waiting: -1}
	for flows, want := range map[bool]int{false: http.StatusOK, true: http.StatusTooManyRequests} {
		opts := Options{Limits: limits}
		if flows {
			opts.Flow = func(*http.Request, router.Identity) string { return "the user of all tokens" }
		}
		s := newScene(t, opts)
		ctx, cancel := context.WithCancel(t.Context())
		var hanging sync.WaitGroup
		hanging.Go(func() { _ = s.get(ctx, "/hang") })
		require.NoError(t, s.a.await(ctx, 1))
		got, err := s.send(version, "Authorization: Bearer passed-on")
		require.NoError(t, err)
		require.Equal(t, want, got.code)
		cancel()
		hanging.Wait()
	}
}

// A request whose context ends at the moment of its admission keeps no place.
func TestAPlaceThatIsGivenAtTheEndIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(bounds{1, 1, 1}, bounds{1, 1, 1}, time.Minute)
		f := flowOf(0, 0)
		for range 50 { // enter may observe the two events in either order, at random
			require.NoError(t, g.enter(t.Context(), f))
			ctx, cancel := context.WithCancel(t.Context())
			entered := make(chan error)
			go func() { entered <- g.enter(ctx, f) }()
			synctest.Wait()
			cancel()
			g.leave(f)
			if <-entered == nil {
				g.leave(f)
			}
			require.Equal(t, free, g.busy.bindingBound(f))
		}
	})
}
