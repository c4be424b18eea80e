// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLabelsAreKeptOnce(t *testing.T) {
	sets := labelSets{}
	labels := rapid.MapOf(rapid.StringMatching(`[ab/]{0,2}`), rapid.StringMatching(`[ab]{0,2}`))
	rapid.Check(t, func(t *rapid.T) {
		given := labels.Draw(t, "labels")
		kept := sets.intern(maps.Clone(given))
		require.Len(t, kept, len(given))
		require.True(t, maps.Equal(given, kept))
	})
	first := sets.intern(map[string]string{"a": "b"})
	first["mark"] = "x"
	require.Contains(t, sets.intern(map[string]string{"a": "b"}), "mark", "it is the same map")
	for i := range 3 * maxLabelSets {
		sets.intern(map[string]string{"n": strconv.Itoa(i)})
	}
	require.LessOrEqual(t, len(sets), maxLabelSets)
}
