// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func keysOf(list []candidate, n int) map[string]int {
	shares := map[string]int{}
	for i := range n {
		shares[owner(list, fmt.Sprintf("key-%d", i))]++
	}
	return shares
}

func TestThousandKeysOverFiveReplicas(t *testing.T) {
	for _, format := range []string{"replica-%d", "%d", "atoll-7d9f8b6c5d-abcd%d", "a.%d.example.org"} {
		var names []string
		for i := range 5 {
			names = append(names, fmt.Sprintf(format, i))
		}
		shares := keysOf(candidates(names), 1000)
		require.Len(t, shares, 5)
		for name, n := range shares {
			require.InDelta(t, 200, n, 40, "%s of %v", name, shares)
		}
	}
}

// The test draws the names of 2 to 12 replicas and divides 5000 keys among them. Each share differs
// from an even share by at most six standard deviations of a random division.
func TestSharesAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`), 2, 12, rapid.ID[string]).Draw(t, "names")
		const keys = 5000
		shares := keysOf(candidates(names), keys)
		p := 1 / float64(len(names))
		for _, name := range names {
			require.InDelta(t, keys*p, shares[name], 6*math.Sqrt(keys*p*(1-p)), "%s of %v", name, shares)
		}
	})
}

func TestOnlyKeysOfTheOneThatJoinsOrLeavesMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String(), 1, 12, rapid.ID[string]).Filter(func(n []string) bool { return !slices.Contains(n, "") }).Draw(t, "names")
		few, all := candidates(names[1:]), candidates(rapid.Permutation(names).Draw(t, "order"))
		for i := range 500 {
			key := fmt.Sprint(i)
			before, after := owner(few, key), owner(all, key)
			require.Contains(t, names, after)
			if after != names[0] {
				require.Equal(t, before, after)
			}
		}
	})
}

func TestOwnersAreTheSameInEveryVersionOfTheProgram(t *testing.T) {
	list := candidates([]string{"c", "a", "b", "a"})
	require.Len(t, list, 3)
	got := ""
	for i := range 12 {
		got += owner(list, fmt.Sprint(i))
	}
	require.Equal(t, "baacacaaacaa", got)
	require.Empty(t, owner(nil, "key"))
}
