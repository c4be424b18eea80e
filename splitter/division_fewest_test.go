// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter"
)

// FewestSpread uses as many clusters as Fewest, and divides by weight over them.
func TestDivideFewestSpread(t *testing.T) {
	room := func(name string, weight int64) splitter.Share {
		return splitter.Share{Name: name, Weight: new(weight), Capacity: new(int64(10))}
	}
	there := func(s splitter.Share, n int64) splitter.Share {
		s.Present = n
		return s
	}
	for name, c := range map[string]struct {
		replicas, moves int64
		shares          []splitter.Share
		want            map[string]int64
	}{
		"one cluster has room":     {10, 0, []splitter.Share{room("a", 3), room("b", 2), room("c", 1)}, map[string]int64{"a": 10, "b": 0, "c": 0}},
		"two by weight":            {12, 0, []splitter.Share{room("a", 3), room("b", 2), room("c", 1)}, map[string]int64{"a": 7, "b": 5, "c": 0}},
		"a third":                  {21, 0, []splitter.Share{room("a", 3), room("b", 2), room("c", 1)}, map[string]int64{"a": 10, "b": 7, "c": 4}},
		"present replicas stay":    {12, 0, []splitter.Share{there(room("a", 3), 10), room("b", 2)}, map[string]int64{"a": 10, "b": 2}},
		"and move within a budget": {12, 1, []splitter.Share{there(room("a", 3), 10), room("b", 2)}, map[string]int64{"a": 9, "b": 3}},
		"a minimum uses a cluster": {5, 0, []splitter.Share{room("a", 3), {Name: "b", Min: 1}}, map[string]int64{"a": 0, "b": 5}},
		"too few for the minima":   {2, 0, []splitter.Share{{Name: "a", Min: 3}, {Name: "b", Min: 3}}, map[string]int64{"a": 1, "b": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := mustDivide(t, splitter.Demand{Replicas: c.replicas, Moves: c.moves, Mode: splitter.FewestSpread}, c.shares)
			require.Equal(t, c.want, result(plan))
		})
	}
	packed := mustDivide(t, splitter.Demand{Replicas: 12, Mode: splitter.Fewest}, []splitter.Share{room("a", 3), room("b", 2), room("c", 1)})
	require.Equal(t, map[string]int64{"a": 10, "b": 2, "c": 0}, result(packed))
}
