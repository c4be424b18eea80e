// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
)

// one draws a random claim of one cluster.
func one(t *rapid.T, name string) splitter.Share {
	s := splitter.Share{Name: name}
	if rapid.Bool().Draw(t, "weighted") {
		s.Weight = new(rapid.Int64Range(0, 20).Draw(t, "weight"))
	}
	if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
		s.Min = rapid.Int64Range(0, 6).Draw(t, "min")
		s.Max = new(s.Min + rapid.Int64Range(0, 25).Draw(t, "max"))
	}
	if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
		s.Capacity = new(rapid.Int64Range(0, 30).Draw(t, "capacity"))
	}
	if rapid.Bool().Draw(t, "in use") {
		s.Present = rapid.Int64Range(0, 20).Draw(t, "present")
	}
	return s
}

func flat(t *rapid.T) []splitter.Share {
	shares := make([]splitter.Share, rapid.IntRange(0, 7).Draw(t, "clusters"))
	for i := range shares {
		shares[i] = one(t, string(rune('a'+i)))
	}
	return shares
}

// tree draws a random tree of regions, zones and clusters.
func tree(t *rapid.T, name string, depth int) []splitter.Share {
	shares := make([]splitter.Share, rapid.IntRange(0, 4).Draw(t, "siblings"))
	for i := range shares {
		s := one(t, fmt.Sprint(name, i))
		if depth > 0 && rapid.Bool().Draw(t, "group") {
			s.Group, s.Present = true, 0
			s.Members = tree(t, s.Name, depth-1)
		}
		shares[i] = s
	}
	return shares
}

func demand(t *rapid.T, modes ...splitter.Mode) splitter.Demand {
	return splitter.Demand{
		Replicas: rapid.Int64Range(0, 120).Draw(t, "replicas"),
		Mode:     rapid.SampledFrom(modes).Draw(t, "mode"),
		UID:      types.UID(rapid.StringN(0, 2, -1).Draw(t, "uid")),
		Moves:    rapid.OneOf(rapid.Just(int64(0)), rapid.Just(int64(splitter.AnyMoves)), rapid.Int64Range(1, 20)).Draw(t, "moves"),
	}
}

var dividing = []splitter.Mode{splitter.Spread, splitter.Fewest, splitter.FewestSpread, splitter.Fill}

func mustDivide(t require.TestingT, d splitter.Demand, shares []splitter.Share) splitter.Plan {
	plan, err := splitter.Divide(d, shares)
	require.NoError(t, err)
	return plan
}

// settled returns the shares after a plan was carried out: Present is the number of replicas in the
// plan.
func settled(shares []splitter.Share, p splitter.Plan) []splitter.Share {
	shares = slices.Clone(shares)
	for i := range shares {
		if s := &shares[i]; s.Group {
			s.Members = settled(s.Members, p)
		} else {
			s.Present = p.Replicas(s.Name)
		}
	}
	return shares
}

func TestDivideAsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, dividing...), flat(t)
		plan := mustDivide(t, d, shares)
		want, moved, due := reference(d, shares)
		require.Equal(t, want, result(plan))
		require.Equal(t, []int64{moved, due}, []int64{plan.Moved, plan.Due})
	})
}

// check checks the plan at each level of the tree. It returns the number of replicas that the
// shares have, and the most that they could have. A share of weight zero can have at most its
// present replicas.
func check(t *rapid.T, p splitter.Plan, shares []splitter.Share) (replicas, most int64) {
	least := true
	for _, s := range shares {
		n, room := p.Replicas(s.Name), int64(math.MaxInt32)
		if s.Group {
			n, room = check(t, p, s.Members)
		}
		require.GreaterOrEqual(t, n, int64(0))
		if s.Max != nil {
			require.LessOrEqual(t, n, *s.Max, s.Name)
			room = min(room, *s.Max)
		}
		if s.Capacity != nil {
			require.LessOrEqual(t, n, *s.Capacity, s.Name)
			room = min(room, *s.Capacity)
		}
		least = least && n <= s.Min
		if s.Weight != nil && *s.Weight == 0 {
			room = n
		}
		replicas, most = replicas+n, most+room
	}
	for _, s := range shares {
		if !s.Group && (s.Capacity == nil || *s.Capacity >= s.Min) {
			require.True(t, p.Replicas(s.Name) >= s.Min || least || replicas < sumOfMinima(shares), "%s has less than its minimum", s.Name)
		}
	}
	return replicas, most
}

func sumOfMinima(shares []splitter.Share) (n int64) {
	for _, s := range shares {
		n += s.Min
		if s.Group {
			n += sumOfMinima(s.Members)
		}
	}
	return n
}

func TestDivideKeepsSumAndBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, dividing...), tree(t, "c", 2)
		plan := mustDivide(t, d, shares)
		replicas, most := check(t, plan, shares)
		require.Equal(t, d.Replicas, replicas+plan.Unplaced)
		require.GreaterOrEqual(t, plan.Unplaced, int64(0))
		if plan.Unplaced > 0 {
			require.Equal(t, most, replicas, "not placed though there is room")
		}
		require.LessOrEqual(t, plan.Moved, d.Moves)
		require.True(t, plan.Due == 0 || plan.Moved == d.Moves)
		require.True(t, slices.IsSortedFunc(plan.Shards, func(a, b splitter.Assignment) int { return cmpNames(a.Cluster, b.Cluster) }))
		for _, r := range plan.Reasons {
			require.Positive(t, r.By, "%v", r)
		}
	})
}

func cmpNames(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// nowhereLess checks that no cluster, apart from except, has more replicas in a than in b.
func nowhereLess(t *rapid.T, a, b splitter.Plan, except string) {
	for _, s := range a.Shards {
		if s.Cluster != except {
			require.LessOrEqual(t, s.Replicas, b.Replicas(s.Cluster), s.Cluster)
		}
	}
}

func TestDivideMoreTakesNoneAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, dividing...), tree(t, "c", 2)
		d.Moves = 0
		more := d
		more.Replicas += rapid.Int64Range(0, 30).Draw(t, "more")
		few, many := mustDivide(t, d, shares), mustDivide(t, more, shares)
		if d.Mode != splitter.FewestSpread { // more replicas may use another cluster, and then the others have fewer
			nowhereLess(t, few, many, "")
		}
		// The same holds for a change from one number to the other, in both directions.
		nowhereLess(t, few, mustDivide(t, more, settled(shares, few)), "")
		nowhereLess(t, mustDivide(t, d, settled(shares, many)), many, "")
	})
}

// The clusters have their shares of one number of replicas, and the number changes. Whatever Moves
// allows, the division gives them their shares of the new number. No cluster's share of the larger
// number is below its share of the smaller one.
func TestDivideMoreTakesNoneAwayWithMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, splitter.Spread, splitter.Fill), tree(t, "c", 2)
		more := d
		more.Replicas += rapid.Int64Range(0, 30).Draw(t, "more")
		empty := settled(shares, splitter.Plan{})
		few, many := mustDivide(t, d, empty), mustDivide(t, more, empty)
		nowhereLess(t, few, many, "")
		require.Equal(t, result(many), result(mustDivide(t, more, settled(shares, few))))
		require.Equal(t, result(few), result(mustDivide(t, d, settled(shares, many))))
	})
}

// without returns the tree without the named cluster.
func without(shares []splitter.Share, name string) []splitter.Share {
	shares = slices.Clone(shares)
	for i := range shares {
		if shares[i].Group {
			shares[i].Members = without(shares[i].Members, name)
		}
	}
	return slices.DeleteFunc(shares, func(s splitter.Share) bool { return s.Name == name && !s.Group })
}

func TestDivideWhoJoinsOnlyTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, splitter.Spread, splitter.Fill), tree(t, "c", 2)
		if rapid.Bool().Draw(t, "flat") {
			d, shares = demand(t, splitter.Spread, splitter.Fewest, splitter.Fill), flat(t)
		}
		d.Moves = 0
		all := mustDivide(t, d, shares)
		if len(all.Shards) == 0 {
			return
		}
		joins := rapid.SampledFrom(all.Shards).Draw(t, "joins").Cluster
		fewer := without(shares, joins)
		nowhereLess(t, all, mustDivide(t, d, fewer), joins)

		// All clusters have their shares, and a cluster joins. Although the number of moves is not
		// limited, no other cluster gains replicas. If the cluster leaves again, no other cluster
		// loses replicas.
		d.Moves = splitter.AnyMoves
		empty := settled(fewer, splitter.Plan{})
		before := mustDivide(t, d, empty)
		start := settled(shares, before)
		after := mustDivide(t, d, start)
		nowhereLess(t, after, before, joins)
		nowhereLess(t, after, mustDivide(t, d, settled(fewer, after)), joins)
	})
}

func TestDivideMovesNoMoreThanItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, dividing...), flat(t)
		plan := mustDivide(t, d, shares)
		cs := candidates(d, shares)
		if d.Replicas < total(candidates(splitter.Demand{Replicas: math.MaxInt32}, shares), func(c *candidate) int64 { return c.lo }) {
			return // too few for the minima
		}
		held := total(cs, func(c *candidate) int64 { return min(max(c.Present, c.lo), c.hi) })
		var added, removed int64
		for _, c := range cs {
			change := plan.Replicas(c.Name) - c.Present
			added, removed = added+max(0, change), removed+max(0, -change)
		}
		if d.Replicas < held {
			must := total(cs, func(c *candidate) int64 { return max(0, c.lo-c.Present) })
			require.LessOrEqual(t, added, must+plan.Moved)
		} else {
			must := total(cs, func(c *candidate) int64 { return max(0, c.Present-c.hi) })
			require.LessOrEqual(t, removed, must+plan.Moved)
		}
	})
}

// Repeated divisions with a small budget of moves end in the same state as one division without a
// limit, and make no superfluous moves.
func TestDivideStepByStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, splitter.Spread, splitter.Fill), flat(t)
		d.Moves = rapid.Int64Range(1, 9).Draw(t, "budget")
		step := mustDivide(t, d, shares)
		total, made := step.Moved+step.Due, step.Moved
		for step.Due > 0 {
			due := step.Due
			step = mustDivide(t, d, settled(shares, step))
			require.Equal(t, due, step.Moved+step.Due)
			made += step.Moved
		}
		require.Equal(t, total, made)
		d.Moves = splitter.AnyMoves
		require.Equal(t, result(mustDivide(t, d, shares)), result(step))
		require.Equal(t, result(step), result(mustDivide(t, d, settled(shares, step))), "stays")
	})
}

func TestDivideInAnyOrder(t *testing.T) {
	var shuffle func(t *rapid.T, shares []splitter.Share) []splitter.Share
	shuffle = func(t *rapid.T, shares []splitter.Share) []splitter.Share {
		shares = rapid.Permutation(shares).Draw(t, "order")
		for i := range shares {
			if shares[i].Group {
				shares[i].Members = shuffle(t, shares[i].Members)
			}
		}
		return shares
	}
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, append(dividing, splitter.Duplicate)...), tree(t, "c", 1)
		for i := range shares {
			if d.Mode == splitter.Duplicate && shares[i].Group {
				shares[i].Min, shares[i].Max, shares[i].Capacity = 0, nil, nil
			}
		}
		plan := mustDivide(t, d, shares)
		require.Equal(t, plan, mustDivide(t, d, shuffle(t, shares)))
	})
}

// A region or zone with one member gets the same result as that member alone.
func TestDivideGroupOfOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, dividing...), flat(t)
		plan := mustDivide(t, d, shares)
		for i, s := range shares {
			// The name decides between equal claims, so the group gets its member's name.
			shares[i] = splitter.Share{Name: s.Name, Weight: s.Weight, Group: true, Members: []splitter.Share{s}}
		}
		require.Equal(t, result(plan), result(mustDivide(t, d, shares)))
	})
}

func TestDivideFewestIsFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, splitter.Fewest, splitter.FewestSpread), settled(flat(t), splitter.Plan{})
		plan := mustDivide(t, d, shares)
		if d.Mode == splitter.FewestSpread && d.Replicas < sumOfMinima(shares) {
			return // each cluster that has a minimum gets a part of it
		}
		used := 0
		for _, a := range plan.Shards {
			if a.Replicas > 0 {
				used++
			}
		}
		cs := candidates(d, shares)
		for set := range uint(1) << len(cs) {
			var room, needed int64
			for i, c := range cs {
				if set>>i&1 == 1 {
					room += c.desiredShare()
				} else {
					needed += c.lo
				}
			}
			if needed == 0 && room >= d.Replicas-plan.Unplaced {
				require.LessOrEqual(t, used, bits.OnesCount(set), "%b would do", set)
			}
		}
	})
}

// With numbers up to the greatest int64, no seat could move to another cluster with a greater claim
// to it. This property defines Webster's method.
func TestDivideLargeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		large := func(most int64, label string) int64 {
			return rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(max(0, most-5), most), rapid.Int64Range(0, most)).Draw(t, label)
		}
		n := rapid.IntRange(1, 6).Draw(t, "clusters")
		shares := make([]splitter.Share, n)
		for i := range shares {
			s := &shares[i]
			*s = splitter.Share{Name: string(rune('a' + i)), Weight: new(max(1, large(math.MaxInt64/int64(n), "weight"))), Min: large(math.MaxInt64, "min")}
			s.Max = new(max(s.Min, large(math.MaxInt64, "max")))
			s.Present = large(math.MaxInt64, "present")
		}
		d := splitter.Demand{Replicas: large(math.MaxInt64, "replicas"), Moves: splitter.AnyMoves}
		plan := mustDivide(t, d, shares)
		placed, least := big.NewInt(plan.Unplaced), big.NewInt(0)
		for _, s := range shares {
			placed.Add(placed, big.NewInt(plan.Replicas(s.Name)))
			least.Add(least, big.NewInt(s.Min))
		}
		require.Zero(t, placed.Cmp(big.NewInt(d.Replicas)))
		tooFew := least.Cmp(big.NewInt(d.Replicas)) > 0
		for i := range shares {
			s := &shares[i]
			lo, hi := s.Min, *s.Max
			if tooFew {
				lo, hi = 0, s.Min
			}
			s.Min, s.Max = lo, &hi
			require.LessOrEqual(t, lo, plan.Replicas(s.Name))
			require.LessOrEqual(t, plan.Replicas(s.Name), hi)
		}
		for _, a := range shares {
			for _, b := range shares {
				x, y := plan.Replicas(a.Name), plan.Replicas(b.Name)
				if x > a.Min && y < *b.Max {
					require.False(t, later(a, x, b, y), "a seat of %s belongs to %s", a.Name, b.Name)
				}
			}
		}
	})
}
