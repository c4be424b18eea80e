// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns a claim in peer p; created is its creation time in seconds, by the peer's clock.
func at(p int, created int) candidate {
	return candidate{
		peer: region.PeerName(fmt.Sprintf("p%d", p)), cluster: types.UID(fmt.Sprintf("c%d", 9-p)),
		contact: fresh, uid: types.UID(fmt.Sprintf("u%d", p)), created: noon.Add(time.Duration(created) * time.Second),
	}
}

func heldAt(p int) decision {
	return decision{peer: at(p, 0).peer, uid: at(p, 0).uid, since: noon}
}

// permutations returns every order of n items.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{{}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(p), i, n-1))
		}
	}
	return all
}

func TestTheSameClaimWinsInEveryOrderOfArrival(t *testing.T) {
	t.Parallel()
	orders := 0
	for n := 1; n <= 4; n++ {
		for times := range 1 << (2 * n) { // each claim is created in one of four seconds
			claims := make([]candidate, n)
			for p := range n {
				claims[p] = at(p, times>>(2*p)&3)
			}
			for _, order := range permutations(n) {
				// decided is the number of claims that are known at the decision.
				for decided := 1; decided <= n; decided++ {
					orders++
					arrived := make([]candidate, decided)
					for i, p := range order[:decided] {
						arrived[i] = claims[p]
					}
					want := slices.MinFunc(slices.Clone(arrived), func(a, b candidate) int {
						return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.cluster, b.cluster))
					})
					got := decide(view{candidates: arrived, settled: true})
					require.Equal(t, verdict{act: grant, winner: want}, got)
					// A claim that arrives later changes nothing, even if it is older.
					held := decision{peer: want.peer, uid: want.uid, since: noon}
					for i := decided; i < n; i++ {
						arrived = append(arrived, claims[order[i]])
						require.Equal(t, keep, decide(view{candidates: arrived, settled: true, decision: held}).act)
					}
				}
			}
		}
	}
	t.Logf("%d orders", orders)
}

func TestDecide(t *testing.T) {
	t.Parallel()
	bound := func(c candidate, since int) candidate {
		c.bound = noon.Add(time.Duration(since) * time.Second)
		return c
	}
	with := func(c candidate, contact contact) candidate {
		c.contact = contact
		return c
	}
	leaves := func(c candidate) candidate {
		c.leaving = true
		return c
	}
	renamed := at(0, 5)
	renamed.peer = "new-name"
	for name, tc := range map[string]struct {
		view view
		want verdict
	}{
		"nobody claims it": {view{settled: true}, verdict{}},
		"claims are too new to know their rivals": {
			view{candidates: []candidate{at(1, 0)}}, verdict{act: wait},
		},
		"a peer that has not answered yet may have an older claim": {
			view{candidates: []candidate{at(1, 0)}, settled: true, awaiting: true}, verdict{act: wait},
		},
		"a claim in a peer that does not answer gains nothing": {
			view{candidates: []candidate{with(at(0, 0), silent), at(1, 5)}, settled: true}, verdict{act: grant, winner: at(1, 5)},
		},
		"a claim that is being deleted gains nothing": {
			view{candidates: []candidate{leaves(at(0, 0)), at(1, 5)}, settled: true}, verdict{act: grant, winner: at(1, 5)},
		},
		"the holder keeps it though an older claim has come": {
			view{decision: heldAt(1), holder: fresh, candidates: []candidate{at(0, 0), at(1, 5)}, settled: true}, verdict{},
		},
		"a holder that does not answer keeps it": {
			view{decision: heldAt(1), holder: silent, candidates: []candidate{at(0, 0)}, settled: true}, verdict{},
		},
		"a holder that has not answered yet keeps it": {
			view{decision: heldAt(1), holder: awaited, candidates: []candidate{at(0, 0)}, settled: true}, verdict{},
		},
		"a holder that is being deleted keeps it until it is gone": {
			view{decision: heldAt(1), holder: fresh, candidates: []candidate{at(0, 0), leaves(at(1, 5))}, settled: true}, verdict{},
		},
		"a holder that is gone gives it to the next": {
			view{decision: heldAt(1), holder: fresh, candidates: []candidate{at(0, 0)}, settled: true},
			verdict{act: grant, winner: at(0, 0), lost: true},
		},
		"a holder that was deleted and made again is another claim": {
			view{decision: decision{peer: "p1", uid: "before", since: noon}, holder: fresh, candidates: []candidate{at(0, 0), at(1, 5)}, settled: true},
			verdict{act: grant, winner: at(0, 0), lost: true},
		},
		"a holder that is gone leaves it to nobody": {
			view{decision: heldAt(1), holder: fresh, settled: true}, verdict{act: vacate, lost: true},
		},
		"a peer that has just left the ring keeps it": {
			view{decision: heldAt(1), left: true, candidates: []candidate{at(0, 0)}, settled: true}, verdict{},
		},
		"a peer that has left the ring for good loses it": {
			view{decision: heldAt(1), left: true, departed: true, candidates: []candidate{at(0, 0)}, settled: true},
			verdict{act: grant, winner: at(0, 0), lost: true},
		},
		"a peer that comes under another name keeps it": {
			view{decision: heldAt(0), left: true, candidates: []candidate{renamed, at(1, 0)}, settled: true},
			verdict{act: grant, winner: renamed},
		},
		"a copy of the holder's cluster beside it changes nothing": {
			view{decision: heldAt(0), holder: silent, candidates: []candidate{renamed}, settled: true}, verdict{},
		},
		"a status that says Bound outlives the decision": {
			view{candidates: []candidate{at(0, 0), bound(at(1, 5), 7)}, settled: true}, verdict{act: grant, winner: bound(at(1, 5), 7)},
		},
		"also in a peer that does not answer": {
			view{candidates: []candidate{at(0, 0), with(bound(at(1, 5), 7), silent)}, settled: true},
			verdict{act: grant, winner: with(bound(at(1, 5), 7), silent)},
		},
		"of two such, one was restored: the later was true": {
			view{candidates: []candidate{bound(at(0, 0), 7), bound(at(1, 5), 8)}, settled: true}, verdict{act: grant, winner: bound(at(1, 5), 8)},
		},
		"a status counts for nothing beside a decision": {
			view{decision: heldAt(2), holder: fresh, candidates: []candidate{at(0, 0), bound(at(1, 5), 7)}, settled: true},
			verdict{act: grant, winner: at(0, 0), lost: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decide(tc.view)
			require.Equal(t, tc.want, got)
			slices.Reverse(tc.view.candidates)
			require.Equal(t, got, decide(tc.view))
		})
	}
}
