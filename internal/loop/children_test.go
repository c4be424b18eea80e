// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/loop"
)

// Children has exactly the parents that were set last.
func TestChildren(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i, want := &loop.Children{}, map[string]string{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			name, set := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "child"), rapid.SampledFrom([]string{"", "s", "t"}).Draw(t, "parent")
			require.Equal(t, want[name], i.Set(child(name), set))
			want[name] = set
		}
		var sets []string
		for _, set := range []string{"s", "t"} {
			var of []string
			for _, at := range i.Of(child(set)) {
				of = append(of, at.Name)
			}
			var wanted []string
			for name, its := range want {
				if its == set {
					wanted = append(wanted, name)
				}
			}
			require.ElementsMatch(t, wanted, of)
			if wanted != nil {
				sets = append(sets, set)
			}
		}
		var got []string
		for _, at := range i.Parents() {
			got = append(got, at.Name)
		}
		slices.Sort(got)
		require.Equal(t, sets, got)
	})
}

func child(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}
