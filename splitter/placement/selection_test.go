// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// drawBounds draws clusters in regions and zones, with their names, and a policy with bounds of both.
func drawBounds(t *rapid.T) (spec v1alpha1.PlacementPolicySpec, clusters []splitter.Cluster, present []string) {
	spec = v1alpha1.PlacementPolicySpec{MaxClusters: rapid.Int32Range(0, 5).Draw(t, "most"), SpreadBy: []string{"region", "zone"}}
	for _, key := range spec.SpreadBy {
		if rapid.IntRange(0, 3).Draw(t, "bounded") > 0 {
			spec.Groups = append(spec.Groups, v1alpha1.GroupBounds{
				Key: key, MinGroups: rapid.Int32Range(0, 4).Draw(t, "groups"), MaxClusters: rapid.Int32Range(0, 3).Draw(t, "per group"),
			})
		}
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "clusters") {
		c := splitter.Cluster{Name: fmt.Sprint("c", i), State: splitter.Placeable, Labels: map[string]string{
			"region": rapid.SampledFrom([]string{"eu", "us", "ap"}).Draw(t, "region"), "zone": rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "zone"),
		}}
		if rapid.IntRange(0, 3).Draw(t, "avoided") == 0 {
			c.Taints = []syncerv1alpha1.Taint{{Key: "k", Effect: "PreferNoSchedule"}}
		}
		clusters = append(clusters, c)
		if rapid.Bool().Draw(t, "present") {
			present = append(present, c.Name)
		}
	}
	return spec, clusters, present
}

// within reports whether the clusters meet the upper bounds of a policy, and whether they also meet the lower ones.
func within(spec v1alpha1.PlacementPolicySpec, clusters []splitter.Cluster) (upper, all bool) {
	upper, all = spec.MaxClusters == 0 || len(clusters) <= int(spec.MaxClusters), true
	for _, g := range spec.Groups {
		in := map[[2]string]int{}
		for _, c := range clusters {
			group := [2]string{groupLabel(c, "region")}
			if g.Key == "zone" {
				group[1] = groupLabel(c, "zone")
			}
			in[group]++
		}
		for _, n := range in {
			upper = upper && (g.MaxClusters == 0 || n <= int(g.MaxClusters))
		}
		all = all && len(in) >= int(g.MinGroups)
	}
	return upper, upper && all
}

func named(clusters []splitter.Cluster, names []string) (list []splitter.Cluster) {
	for _, c := range clusters {
		if slices.Contains(names, c.Name) {
			list = append(list, c)
		}
	}
	return list
}

// The test compares Choose with all sets of the clusters. If some set meets the bounds, Choose returns such a set, and no
// other such set is larger or has more present clusters. Otherwise it returns no cluster. The order of the clusters does not
// matter, and a second call with the chosen clusters as present ones returns the same.
func TestChooseMeetsTheBoundsOfGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, clusters, present := drawBounds(t)
		largest, most := -1, -1
		for set := range uint(1) << len(clusters) {
			var names []string
			for i, c := range clusters {
				if set>>i&1 == 1 {
					names = append(names, c.Name)
				}
			}
			if _, all := within(spec, named(clusters, names)); all {
				largest, most = max(largest, bits.OnesCount(set)), max(most, len(without(names, without(names, present))))
			}
		}
		got, missing, err := choose(spec, "uid", clusters, present)
		require.NoError(t, err)
		require.Equal(t, largest < 0, missing != nil)
		if missing != nil {
			require.Empty(t, got)
			require.Less(t, missing.has, missing.want)
			return
		}
		_, all := within(spec, named(clusters, got))
		require.True(t, all, "%v", got)
		require.Len(t, got, largest)
		require.Len(t, named(named(clusters, present), got), most, "present clusters in %v", got)
		again, err := Choose(spec, "uid", rapid.Permutation(clusters).Draw(t, "order"), present)
		require.NoError(t, err)
		require.Equal(t, got, again, "in any order")
		again, err = Choose(spec, "uid", clusters, got)
		require.NoError(t, err)
		require.Equal(t, got, again, "stable")
	})
}

// A cluster that joins replaces no other. When a cluster leaves, the others stay, unless the bounds require a group that
// only a cluster in place of one of them can form.
func TestChooseWithinBoundsDoesNotShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, clusters, _ := drawBounds(t)
		if len(clusters) == 0 {
			return
		}
		i := rapid.IntRange(0, len(clusters)-1).Draw(t, "joins")
		fewer := slices.Delete(slices.Clone(clusters), i, i+1)
		before, err := Choose(spec, "uid", fewer, nil)
		require.NoError(t, err)
		after, err := Choose(spec, "uid", clusters, before)
		require.NoError(t, err)
		require.Subset(t, after, before)
	})
}

// Five clusters are present, and four zones are required. The present cluster in the other region forms one of the zones,
// although it is avoided and another cluster there is not.
func TestTheBoundsPreferPresentClusters(t *testing.T) {
	in := func(name, region, zone string) splitter.Cluster {
		return splitter.Cluster{Name: name, Labels: map[string]string{"region": region, "zone": zone}}
	}
	clusters := []splitter.Cluster{in("a", "eu", "1"), in("b", "eu", "1"), in("c", "eu", "2"), in("d", "eu", "3"), in("e", "us", "1"), in("f", "us", "1")}
	clusters[4].Taints = []syncerv1alpha1.Taint{{Key: "k", Effect: "PreferNoSchedule"}}
	names, err := Choose(v1alpha1.PlacementPolicySpec{
		MaxClusters: 4, SpreadBy: []string{"region", "zone"}, Groups: []v1alpha1.GroupBounds{{Key: "zone", MinGroups: 4}},
	}, "uid", clusters, []string{"a", "b", "c", "d", "e"})
	require.NoError(t, err)
	require.Subset(t, names, []string{"c", "d", "e"})
	require.NotContains(t, names, "f")
}

func TestShortages(t *testing.T) {
	clusters := []splitter.Cluster{{Name: "a", Labels: map[string]string{"region": "eu"}}, {Name: "b", Labels: map[string]string{"region": "eu"}}}
	spec := v1alpha1.PlacementPolicySpec{SpreadBy: []string{"region"}, Groups: []v1alpha1.GroupBounds{{Key: "region", MinGroups: 2}}}
	names, missing, err := choose(spec, "uid", clusters, []string{"a"})
	require.NoError(t, err)
	require.Empty(t, names)
	require.Equal(t, "the clusters form only 1 of at least 2 groups by region", missing.String())
	spec.Groups[0].Key = "zone"
	_, err = Choose(spec, "uid", clusters, nil)
	require.EqualError(t, err, `groups: key "zone" is not in spreadBy`)
}
