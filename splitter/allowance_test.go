// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAllowances(t *testing.T) {
	t.Parallel()
	// at returns a cluster that has observed its allowance.
	at := func(cluster string, pods, missing, allowed int64) disruptable {
		return disruptable{cluster: cluster, pods: pods, missing: missing, present: true, settled: true, allowed: allowed}
	}
	for name, test := range map[string]struct {
		total, turn int64
		all         []disruptable
		next        []int64
		without     []string
	}{
		"by pods, each at least one":        {5, 0, []disruptable{at("a", 90, 0, 0), at("b", 5, 0, 0), at("c", 5, 0, 0)}, []int64{3, 1, 1}, nil},
		"no more than pods":                 {50, 0, []disruptable{at("a", 4, 0, 0), at("b", 2, 0, 0)}, []int64{4, 2}, nil},
		"nothing is allowed":                {0, 0, []disruptable{at("a", 4, 0, 0), at("b", 2, 0, 0)}, []int64{0, 0}, []string{"a", "b"}},
		"more unplaced than allowed":        {-3, 0, []disruptable{at("a", 4, 0, 1)}, []int64{0}, []string{"a"}},
		"one for three: it stays":           {1, 7, []disruptable{at("a", 4, 0, 0), at("b", 9, 0, 0), at("c", 2, 0, 1)}, []int64{0, 0, 1}, []string{"a", "b"}},
		"one for three at first: the most":  {1, 7, []disruptable{at("a", 4, 0, 0), at("b", 9, 0, 0), at("c", 2, 0, 0)}, []int64{0, 1, 0}, []string{"a", "c"}},
		"missing pods use it up":            {1, 0, []disruptable{at("a", 4, 1, 0), at("b", 9, 0, 0)}, []int64{0, 0}, []string{"a"}},
		"missing pods of a part count once": {2, 0, []disruptable{at("a", 4, 1, 1), at("b", 4, 0, 1)}, []int64{1, 1}, nil},
		"missing pods reduce the rest":      {4, 0, []disruptable{at("a", 4, 3, 2), at("b", 4, 0, 2)}, []int64{2, 1}, nil},
		"lowered before another is raised":  {2, 0, []disruptable{at("a", 4, 0, 2), at("b", 4, 0, 0)}, []int64{1, 0}, nil},
		"not observed":                      {2, 0, []disruptable{{cluster: "a", pods: 4, present: true, allowed: 1}, at("b", 4, 0, 0)}, []int64{1, 0}, nil},
		"a new cluster waits too":           {2, 0, []disruptable{at("a", 4, 0, 2), {cluster: "b", pods: 4}}, []int64{1, 0}, nil},
		"a new cluster":                     {2, 0, []disruptable{at("a", 4, 0, 1), {cluster: "b", pods: 4}}, []int64{1, 1}, nil},
		"a cluster without pods":            {2, 0, []disruptable{at("a", 4, 0, 1), at("b", 0, 0, 1)}, []int64{1, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, without, err := allowances(test.total, test.turn, "uid", test.all)
			require.NoError(t, err)
			require.Equal(t, test.next, next)
			require.Equal(t, test.without, without)
		})
	}
}

// Among the clusters that need an allowance, the first are served in turns: each within one round.
func TestTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := make([]disruptable, rapid.IntRange(1, 9).Draw(t, "clusters"))
		needing := int64(0)
		for i := range all {
			all[i] = disruptable{cluster: fmt.Sprint(i), pods: 3, needs: rapid.Bool().Draw(t, "needs")}
			if all[i].needs {
				needing++
			}
		}
		n := rapid.Int64Range(1, int64(len(all))).Draw(t, "enough for")
		first := rapid.Int64Range(0, 1<<40).Draw(t, "turn")
		served := map[int]bool{}
		for turn := first; turn < first+(needing+n-1)/n; turn++ {
			now := inTurn(n, turn, all)
			require.Len(t, now, int(n))
			for _, i := range now {
				served[i] = true
			}
		}
		for i, c := range all {
			require.True(t, served[i] || !c.needs, "cluster %d of %v", i, all)
		}
	})
}

// budgeted is clusters with a budget that they share. Each observes a new allowance late, and its report comes late too.
type budgeted struct {
	total    int64
	turn     int64
	clusters []*budgetedCluster
}

type budgetedCluster struct {
	pods, missing          int64
	needs                  bool
	written, allowed       int64 // the allowance that was written, and the one in effect
	version, observed      int   // of the written allowance, and of the one in effect
	reported, reportedSeen int64 // in the last report: missing pods, and the version
}

func newBudgeted(rng *rand.Rand) *budgeted {
	b := &budgeted{total: rng.Int64N(6), turn: rng.Int64N(1000)}
	for range 1 + rng.IntN(4) {
		b.clusters = append(b.clusters, &budgetedCluster{pods: 1 + rng.Int64N(5), needs: rng.IntN(2) == 0})
	}
	for b.plan() { // the first parts of the budget
		b.settle()
	}
	b.settle()
	return b
}

// plan writes the next allowances, and reports whether one differs.
func (b *budgeted) plan() (wrote bool) {
	var all []disruptable
	for i, c := range b.clusters {
		all = append(all, disruptable{
			cluster: fmt.Sprint(i), pods: c.pods, missing: c.reported, needs: c.needs, present: c.version > 0,
			allowed: c.written, settled: c.reportedSeen == int64(c.version),
		})
	}
	next, _, err := allowances(b.total, b.turn, "uid", all)
	if err != nil {
		panic(err)
	}
	for i, c := range b.clusters {
		if c.version == 0 || c.written != next[i] {
			c.written, wrote = next[i], true
			c.version++
		}
	}
	return wrote
}

// settle lets all clusters observe and report.
func (b *budgeted) settle() {
	for _, c := range b.clusters {
		c.observe()
		c.report()
	}
}

func (c *budgetedCluster) observe() { c.allowed, c.observed = c.written, c.version }
func (c *budgetedCluster) report()  { c.reported, c.reportedSeen = c.missing, int64(c.observed) }

// evict evicts a pod if the cluster's budget allows it.
func (c *budgetedCluster) evict() bool {
	if c.missing >= c.allowed || c.missing == c.pods {
		return false
	}
	c.missing++
	return true
}

func (b *budgeted) missing() (n int64) {
	for _, c := range b.clusters {
		n += c.missing
	}
	return n
}

// In any order of plans, observations, reports, evictions, recoveries and turns, evictions never make more pods
// unavailable than the budget allows for all clusters together.
func TestEvictionsStayWithinTheBudget(t *testing.T) {
	t.Parallel()
	cases := uint64(30_000) // of 60 steps
	if testing.Short() {
		cases = 5_000
	}
	for seed := range cases {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := newBudgeted(rng)
		for range 60 {
			c := b.clusters[rng.IntN(len(b.clusters))]
			switch rng.IntN(8) {
			case 0, 1:
				b.plan()
			case 2:
				c.observe()
			case 3:
				c.report()
			case 4, 5:
				c.evict()
			case 6:
				c.missing = max(0, c.missing-1)
			case 7:
				b.turn++
				c.needs = rng.IntN(2) == 0
			}
			if b.missing() > b.total {
				t.Fatalf("seed %d: %d pods are unavailable of %d: %+v", seed, b.missing(), b.total, b.clusters)
			}
		}
	}
}

// Once clusters have observed and reported, each cluster that needs an allowance can evict a pod within one round of
// turns, from any state before, if pods recover. Without turns nothing is written any more.
func TestDrainsEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5_000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		b := newBudgeted(rng)
		for range 30 {
			c := b.clusters[rng.IntN(len(b.clusters))]
			c.missing = rng.Int64N(c.pods + 1) // crashes, which no budget prevents
			c.report()
			b.plan()
			c.observe()
		}
		evicted := map[int]bool{}
		for range len(b.clusters) {
			b.turn++
			for _, c := range b.clusters {
				c.missing = 0
			}
			b.settle()
			for b.plan() {
				b.settle()
			}
			require.False(t, b.plan(), "seed %d: a plan at rest writes", seed)
			for i, c := range b.clusters {
				evicted[i] = c.evict() || evicted[i]
			}
		}
		for i, c := range b.clusters {
			require.True(t, evicted[i] || !c.needs || b.total == 0, "seed %d: cluster %d of %+v", seed, i, b)
		}
	}
}
