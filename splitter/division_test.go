// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
)

func result(p splitter.Plan) map[string]int64 {
	got := map[string]int64{}
	for _, a := range p.Shards {
		got[a.Cluster] = a.Replicas
	}
	return got
}

func weights(ws ...int64) []splitter.Share {
	shares := make([]splitter.Share, len(ws))
	for i, w := range ws {
		shares[i] = splitter.Share{Name: string(rune('a' + i)), Weight: new(w)}
	}
	return shares
}

// The bounds of all clusters together may be beyond the range of an int64, and the minima may leave little of many replicas.
func TestDivideWithGreatBounds(t *testing.T) {
	const all = int64(1) << 62
	for n := int64(1); n <= 16; n++ {
		for _, least := range []struct{ last, others int64 }{{all / 2, 0}, {all/(n+1) - 1<<40, all/(n+1) - 1<<40}} {
			var shares []splitter.Share
			for i := range n {
				shares = append(shares, splitter.Share{Name: fmt.Sprint("c", i), Weight: new(int64(1000)), Min: least.others, Max: new(int64(math.MaxInt64))})
			}
			for place := range len(shares) + 1 {
				plan, err := splitter.Divide(splitter.Demand{Replicas: all}, slices.Insert(slices.Clone(shares), place, splitter.Share{Name: "last", Weight: new(int64(1)), Min: least.last}))
				require.NoError(t, err)
				for name, replicas := range result(plan) {
					if name == "last" {
						require.Equal(t, least.last, replicas)
						continue
					}
					require.InDelta(t, (all-least.last)/n, replicas, 1, "%s of %d", name, n+1)
				}
			}
		}
	}
}

// Great minima take most of the replicas: the others follow the weights of those that are above their minimum.
func TestDivideWithGreatMinima(t *testing.T) {
	const unit = int64(1) << 54
	names := []string{"i", "j", "k", "l", "m"} // of weights from 9 on
	want := map[string]int64{"i": 19 * unit, "j": 20 * unit, "k": 22 * unit, "l": 24 * unit, "m": 26 * unit}
	for range 100 {
		var shares []splitter.Share
		for _, i := range rand.Perm(len(names)) {
			shares = append(shares, splitter.Share{Name: names[i], Weight: new(int64(9 + i)), Min: 19 * unit})
		}
		plan, err := splitter.Divide(splitter.Demand{Replicas: 111 * unit}, shares)
		require.NoError(t, err)
		require.Equal(t, want, result(plan))
	}
}

func TestDivide(t *testing.T) {
	type shares = []splitter.Share
	type want = map[string]int64
	for name, test := range map[string]struct {
		demand   splitter.Demand
		shares   shares
		want     want
		unplaced int64
		reasons  []splitter.Reason
	}{
		"two to three": {splitter.Demand{Replicas: 15}, weights(2, 3), want{"a": 6, "b": 9}, 0, nil},
		"the minima are part of the shares": {splitter.Demand{Replicas: 10}, shares{{Name: "a", Weight: new(int64(2)), Min: 2}, {Name: "b", Weight: new(int64(3)), Min: 4}},
			want{"a": 4, "b": 6}, 0, nil},
		"fewer do not leave one empty": {splitter.Demand{Replicas: 50}, shares{{Name: "a", Present: 10}, {Name: "b", Present: 70}}, want{"a": 10, "b": 40}, 0,
			[]splitter.Reason{{Name: "b", Limit: splitter.LimitPresent, By: 15}}},
		"no clusters": {splitter.Demand{Replicas: 3}, nil, want{}, 3, nil},
		"none":        {splitter.Demand{}, weights(1, 1), want{"a": 0, "b": 0}, 0, nil},
		"just enough for what a held one has": {splitter.Demand{Replicas: 10, Moves: splitter.AnyMoves},
			shares{{Name: "a", Hold: true, Present: 4}, {Name: "b", Weight: new(int64(9)), Present: 6}}, want{"a": 4, "b": 6}, 0, nil},
		"just enough for a held one and a minimum": {splitter.Demand{Replicas: 10, Moves: splitter.AnyMoves},
			shares{{Name: "a", Hold: true, Present: 4}, {Name: "b", Weight: new(int64(9)), Min: 6}}, want{"a": 4, "b": 6}, 0, nil},
		"too few for a held one and a minimum": {splitter.Demand{Replicas: 10, Moves: splitter.AnyMoves},
			shares{{Name: "a", Hold: true, Present: 4}, {Name: "b", Weight: new(int64(9)), Min: 7}}, want{"a": 1, "b": 9}, 0, nil},
		"a group without weight keeps what is there, where it is": {splitter.Demand{Replicas: 9, Moves: splitter.AnyMoves},
			shares{{Name: "g", Group: true, Weight: new(int64(0)), Members: shares{{Name: "a", Present: 4}, {Name: "b"}}}, {Name: "c", Present: 5, Max: new(int64(5))}},
			want{"a": 4, "b": 0, "c": 5}, 0, nil},
		"one seat is left after rounding, and the heaviest is full": {splitter.Demand{Replicas: 5}, shares{{Name: "a", Weight: new(int64(1000)), Max: new(int64(1))},
			{Name: "b", Weight: new(int64(45))}, {Name: "c", Weight: new(int64(40))}, {Name: "d", Weight: new(int64(40))}}, want{"a": 1, "b": 2, "c": 1, "d": 1}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitMax, By: 3}}},
		"two seats are left after rounding, and the first fills the heaviest": {splitter.Demand{Replicas: 12}, shares{{Name: "a", Weight: new(int64(1040)), Max: new(int64(11))},
			{Name: "b", Weight: new(int64(43))}, {Name: "c", Weight: new(int64(39))}, {Name: "d", Weight: new(int64(39))}, {Name: "e", Weight: new(int64(39))}},
			want{"a": 11, "b": 1, "c": 0, "d": 0, "e": 0}, 0, nil},
		"no weight and no room": {splitter.Demand{Replicas: 9}, shares{{Name: "a", Weight: new(int64(0)), Min: 2, Max: new(int64(2))}, {Name: "b", Max: new(int64(3))}},
			want{"a": 2, "b": 3}, 4, []splitter.Reason{{Name: "a", Limit: splitter.LimitMin, By: 2}, {Name: "b", Limit: splitter.LimitMax, By: 6}}},
		"a minimum": {splitter.Demand{Replicas: 10}, shares{{Name: "a", Min: 7}, {Name: "b"}}, want{"a": 7, "b": 3}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitMin, By: 2}}},
		"a maximum": {splitter.Demand{Replicas: 10}, shares{{Name: "a", Max: new(int64(3))}, {Name: "b"}}, want{"a": 3, "b": 7}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitMax, By: 2}}},
		"no room at all is not room without end": {splitter.Demand{Replicas: 10}, shares{{Name: "a", Capacity: new(int64(0))}, {Name: "b"}}, want{"a": 0, "b": 10}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitCapacity, By: 5}}},
		"no room for all": {splitter.Demand{Replicas: 10}, shares{{Name: "a", Capacity: new(int64(3)), Max: new(int64(9))}, {Name: "b", Max: new(int64(4))}},
			want{"a": 3, "b": 4}, 3, []splitter.Reason{{Name: "a", Limit: splitter.LimitCapacity, By: 2}, {Name: "b", Limit: splitter.LimitMax, By: 1}}},
		"too few for the minima": {splitter.Demand{Replicas: 3}, shares{{Name: "a", Weight: new(int64(2)), Min: 4}, {Name: "b", Min: 2}, {Name: "c"}}, want{"a": 2, "b": 1, "c": 0}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitUnmet, By: 2}, {Name: "b", Limit: splitter.LimitUnmet, By: 1}}},
		"no room for a minimum": {splitter.Demand{Replicas: 9}, shares{{Name: "a", Min: 4, Capacity: new(int64(1))}, {Name: "b"}}, want{"a": 1, "b": 8}, 0,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitCapacity, By: 4}, {Name: "a", Limit: splitter.LimitUnmet, By: 3}}},
		"no weight": {splitter.Demand{Replicas: 9}, weights(0, 1), want{"a": 0, "b": 9}, 0, nil},
		"no weight anywhere": {splitter.Demand{Replicas: 9}, weights(0, 0), want{"a": 0, "b": 0}, 9,
			[]splitter.Reason{{Name: "a", Limit: splitter.LimitWeight, By: 9}, {Name: "b", Limit: splitter.LimitWeight, By: 9}}},
		"no weight keeps what is there": {splitter.Demand{Replicas: 9}, shares{{Name: "a", Weight: new(int64(0)), Present: 4}, {Name: "b", Present: 2}},
			want{"a": 4, "b": 5}, 0, []splitter.Reason{{Name: "a", Limit: splitter.LimitPresent, By: 4}}},
		"no weight gives first": {splitter.Demand{Replicas: 3}, shares{{Name: "a", Weight: new(int64(0)), Present: 4}, {Name: "b", Present: 2}},
			want{"a": 1, "b": 2}, 0, []splitter.Reason{{Name: "a", Limit: splitter.LimitPresent, By: 1}}},
		"a capacity that counts what runs there": {splitter.Demand{Replicas: 9}, shares{{Name: "a", Present: 5, Capacity: new(int64(5))}, {Name: "b", Present: 4}},
			want{"a": 5, "b": 4}, 0, nil},
		"moves": {splitter.Demand{Replicas: 12, Moves: 3}, shares{{Name: "a", Present: 12}, {Name: "b"}, {Name: "c"}},
			want{"a": 9, "b": 2, "c": 1}, 0, []splitter.Reason{{Name: "a", Limit: splitter.LimitPresent, By: 5}}},
		"fewest":         {splitter.Demand{Replicas: 9, Mode: splitter.Fewest}, shares{{Name: "a", Capacity: new(int64(4))}, {Name: "b", Capacity: new(int64(6))}, {Name: "c", Capacity: new(int64(5))}}, want{"a": 0, "b": 6, "c": 3}, 0, []splitter.Reason{{Name: "b", Limit: splitter.LimitCapacity, By: 3}}},
		"fewest, grown":  {splitter.Demand{Replicas: 5, Mode: splitter.Fewest}, shares{{Name: "a", Capacity: new(int64(100))}, {Name: "b", Capacity: new(int64(10)), Present: 3}}, want{"a": 0, "b": 5}, 0, []splitter.Reason{{Name: "b", Limit: splitter.LimitPresent, By: 5}}},
		"fewest, shrunk": {splitter.Demand{Replicas: 4, Mode: splitter.Fewest}, shares{{Name: "a", Present: 1}, {Name: "b", Present: 3}, {Name: "c", Present: 2}}, want{"a": 0, "b": 3, "c": 1}, 0, nil},
		"fill in order":  {splitter.Demand{Replicas: 9, Mode: splitter.Fill}, shares{{Name: "a", Weight: new(int64(1))}, {Name: "b", Weight: new(int64(3)), Max: new(int64(4))}, {Name: "c", Weight: new(int64(2)), Max: new(int64(2))}}, want{"a": 3, "b": 4, "c": 2}, 0, []splitter.Reason{{Name: "b", Limit: splitter.LimitMax, By: 5}, {Name: "c", Limit: splitter.LimitMax, By: 3}}},
		"duplicate": {splitter.Demand{Replicas: 5, Mode: splitter.Duplicate}, shares{{Name: "a"}, {Name: "b", Max: new(int64(3))}, {Name: "c", Min: 6}, {Name: "d", Weight: new(int64(0))}, {Name: "e", Min: 4, Capacity: new(int64(1))}},
			want{"a": 5, "b": 3, "c": 6, "d": 0, "e": 1}, 6, []splitter.Reason{{Name: "b", Limit: splitter.LimitMax, By: 2}, {Name: "c", Limit: splitter.LimitMin, By: 1},
				{Name: "e", Limit: splitter.LimitCapacity, By: 4}, {Name: "e", Limit: splitter.LimitUnmet, By: 3}}},
		"zones": {splitter.Demand{Replicas: 12}, shares{{Name: "north", Group: true, Members: weights(1, 1, 1)}, {Name: "south", Group: true, Members: shares{{Name: "z"}}}},
			want{"a": 2, "b": 2, "c": 2, "z": 6}, 0, nil},
		"a zone without room": {splitter.Demand{Replicas: 13}, shares{{Name: "north", Group: true, Members: weights(1, 3)}, {Name: "south", Group: true, Members: shares{{Name: "z", Capacity: new(int64(2))}}}},
			want{"a": 3, "b": 8, "z": 2}, 0, []splitter.Reason{}},
		"a zone without clusters": {splitter.Demand{Replicas: 2}, shares{{Name: "north", Group: true, Members: shares{}}, {Name: "south", Group: true, Members: shares{{Name: "z"}}}}, want{"z": 2}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := splitter.Divide(test.demand, test.shares)
			require.NoError(t, err)
			require.Equal(t, test.want, result(plan))
			require.Equal(t, test.unplaced, plan.Unplaced)
			if test.reasons != nil {
				require.ElementsMatch(t, test.reasons, plan.Reasons)
			}
		})
	}
}

func TestDivideRefuses(t *testing.T) {
	one := []splitter.Share{{Name: "a"}}
	for text, test := range map[string]struct {
		demand splitter.Demand
		shares []splitter.Share
	}{
		`Mode is "Even"`:            {splitter.Demand{Mode: "Even"}, one},
		"Replicas is -1":            {splitter.Demand{Replicas: -1}, one},
		"Moves is -1":               {splitter.Demand{Moves: -1}, one},
		"share 1: Name is empty":    {splitter.Demand{}, []splitter.Share{{Name: "a"}, {}}},
		"a: Name is there twice":    {splitter.Demand{}, []splitter.Share{{Name: "a"}, {Name: "b"}, {Name: "a"}}},
		"z: Name is there twice":    {splitter.Demand{}, []splitter.Share{{Name: "z", Group: true, Members: one}, {Name: "z", Group: true, Members: []splitter.Share{{Name: "b"}}}}},
		"a: Min 2 is above Max 1":   {splitter.Demand{}, []splitter.Share{{Name: "a", Min: 2, Max: new(int64(1))}}},
		"a: Present of a group":     {splitter.Demand{}, []splitter.Share{{Name: "a", Present: 1, Group: true, Members: one}}},
		"a: Members are only for":   {splitter.Demand{}, []splitter.Share{{Name: "a", Members: []splitter.Share{{Name: "b"}}}}},
		"a: Min, Max and Capacity":  {splitter.Demand{Mode: splitter.Duplicate}, []splitter.Share{{Name: "a", Min: 1, Group: true, Members: one}}},
		"z: a: Weight, Min, Max":    {splitter.Demand{}, []splitter.Share{{Name: "z", Group: true, Members: []splitter.Share{{Name: "a", Present: -1}}}}},
		"b: Weight 1 makes the sum": {splitter.Demand{}, weights(math.MaxInt64, 1)},
		"y: z: b: Min 3 is above":   {splitter.Demand{}, []splitter.Share{{Name: "y", Group: true, Members: []splitter.Share{{Name: "z", Group: true, Members: []splitter.Share{{Name: "b", Min: 3, Max: new(int64(2))}}}}}}},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := splitter.Divide(test.demand, test.shares)
			require.ErrorContains(t, err, "divide: "+text)
		})
	}
	_, err := splitter.Divide(splitter.Demand{}, []splitter.Share{{Name: "x", Group: true, Members: one}, {Name: "y", Group: true, Members: one}})
	require.ErrorContains(t, err, "a: Name is there twice", "in two zones")
}

// Two divisions with the same UID give the same plan. Over thousands of UIDs, the odd replica goes
// to each cluster about equally often.
func TestTiesAreFair(t *testing.T) {
	const objects = 6000
	extra := map[string]int{}
	for i := range objects {
		demand := splitter.Demand{Replicas: 16, UID: types.UID(fmt.Sprint(i))}
		plan, err := splitter.Divide(demand, weights(1, 1, 1))
		require.NoError(t, err)
		again, err := splitter.Divide(demand, weights(1, 1, 1))
		require.NoError(t, err)
		require.Equal(t, plan, again)
		for _, a := range plan.Shards {
			extra[a.Cluster] += int(a.Replicas - 5)
		}
	}
	for name := range maps.Keys(extra) {
		require.InDelta(t, objects/3, extra[name], 5*math.Sqrt(objects*2/9), name)
	}
	require.Len(t, extra, 3)
	got := map[int64]int{}
	for i := range objects {
		plan, err := splitter.Divide(splitter.Demand{Replicas: 15, UID: types.UID(fmt.Sprint(i))}, weights(1, 1))
		require.NoError(t, err)
		got[plan.Replicas("a")]++
	}
	require.Len(t, got, 2)
	require.InDelta(t, objects/2, got[8], 5*math.Sqrt(objects/4))
}

func TestNobodyStarves(t *testing.T) {
	var shares []splitter.Share
	for i := range 100 {
		shares = append(shares, splitter.Share{Name: fmt.Sprintf("c%02d", i)})
	}
	plan, err := splitter.Divide(splitter.Demand{Replicas: 150}, shares)
	require.NoError(t, err)
	count := map[int64]int{}
	for _, a := range plan.Shards {
		count[a.Replicas]++
	}
	require.Equal(t, map[int64]int{1: 50, 2: 50}, count)
}

// Divide is exact for numbers beyond 32 bits and beyond the precision of floating point.
func TestLargeNumbers(t *testing.T) {
	plan, err := splitter.Divide(splitter.Demand{Replicas: 50_000}, weights(50_000, 50_000))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"a": 25_000, "b": 25_000}, result(plan))

	// As float64, the two weights are equal.
	for i := range 50 {
		plan, err = splitter.Divide(splitter.Demand{Replicas: 1, UID: types.UID(fmt.Sprint(i))}, weights(1<<53, 1<<53+1))
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"a": 0, "b": 1}, result(plan))
	}

	plan, err = splitter.Divide(splitter.Demand{Replicas: math.MaxInt64}, []splitter.Share{
		{Name: "a", Weight: new(int64(math.MaxInt64 - 2)), Min: math.MaxInt64 / 2, Present: math.MaxInt64},
		{Name: "b", Min: math.MaxInt64, Present: math.MaxInt64}, {Name: "c", Present: math.MaxInt64},
	})
	require.NoError(t, err)
	require.Equal(t, int64(math.MaxInt64), plan.Replicas("a")+plan.Replicas("b")+plan.Replicas("c"))
}

func TestPlanKnowsWhoTookPart(t *testing.T) {
	plan, err := splitter.Divide(splitter.Demand{Replicas: 3}, weights(1, 1))
	require.NoError(t, err)
	require.Equal(t, int64(3), plan.Replicas("a")+plan.Replicas("b"))
	require.Zero(t, plan.Replicas("z"))
}
