// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

const (
	zone   = "topology.kubernetes.io/zone"
	region = "topology.kubernetes.io/region"
)

func choose(t require.TestingT, spec v1alpha1.PlacementPolicySpec, uid string, clusters []splitter.Cluster, present ...string) []string {
	names, err := placement.Choose(spec, types.UID(uid), clusters, present)
	require.NoError(t, err)
	return names
}

// drawn draws a random list of clusters.
func drawn(t *rapid.T) []splitter.Cluster {
	clusters := make([]splitter.Cluster, rapid.IntRange(0, 9).Draw(t, "clusters"))
	for i := range clusters {
		c := &clusters[i]
		c.Name = fmt.Sprint("c", i)
		c.State = rapid.SampledFrom([]splitter.State{splitter.Placeable, splitter.Placeable, splitter.Holding, splitter.Draining}).Draw(t, "state")
		c.Labels = map[string]string{}
		if z := rapid.IntRange(0, 3).Draw(t, "zone"); z > 0 {
			c.Labels[zone] = fmt.Sprint("z", z)
		}
		if rapid.Bool().Draw(t, "gpu") {
			c.Labels["gpu"] = "yes"
		}
	}
	return clusters
}

func policy(t *rapid.T, clusters []splitter.Cluster) v1alpha1.PlacementPolicySpec {
	spec := v1alpha1.PlacementPolicySpec{MaxClusters: rapid.Int32Range(0, 4).Draw(t, "most")}
	if rapid.Bool().Draw(t, "spread") {
		spec.SpreadBy = []string{zone}
	}
	if rapid.IntRange(0, 3).Draw(t, "select") == 0 {
		spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}
	}
	if len(clusters) > 0 && rapid.Bool().Draw(t, "share") {
		spec.Clusters = []v1alpha1.ClusterShare{{Name: rapid.SampledFrom(clusters).Draw(t, "of").Name, Max: new(int32(0))}}
	}
	return spec
}

func has(t *rapid.T, clusters []splitter.Cluster) (present []string) {
	for _, c := range clusters {
		if rapid.Bool().Draw(t, "present") {
			present = append(present, c.Name)
		}
	}
	return present
}

// allowed reports whether a policy permits a cluster for an object. It is a simpler form of the
// rule in Choose.
func allowed(spec v1alpha1.PlacementPolicySpec, c splitter.Cluster, present []string) bool {
	if spec.ClusterSelector != nil && c.Labels["gpu"] != "yes" || len(spec.Clusters) > 0 && spec.Clusters[0].Name == c.Name {
		return false
	}
	return c.State == splitter.Placeable || c.State == splitter.Holding && slices.Contains(present, c.Name)
}

func TestChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := drawn(t)
		spec, present, uid := policy(t, clusters), has(t, clusters), rapid.StringN(0, 3, -1).Draw(t, "uid")
		got := choose(t, spec, uid, clusters, present...)
		var candidates, stay []string
		for _, c := range clusters {
			if allowed(spec, c, present) {
				candidates = append(candidates, c.Name)
				if slices.Contains(present, c.Name) {
					stay = append(stay, c.Name)
				}
			}
		}
		want := len(candidates)
		if spec.MaxClusters > 0 {
			want = min(want, int(spec.MaxClusters))
		}
		require.Len(t, got, want)
		require.Subset(t, candidates, got)
		if want >= len(stay) {
			require.Subset(t, got, stay, "present clusters stay")
		} else {
			require.Subset(t, stay, got, "and no others are added")
		}
		require.Equal(t, got, choose(t, spec, uid, clusters, got...), "stable")

		shuffled := slices.Clone(clusters)
		r := rand.New(rand.NewPCG(uint64(len(uid)), rapid.Uint64().Draw(t, "order")))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, got, choose(t, spec, uid, shuffled, present...), "in any order")
	})
}

// A cluster that joins replaces no other. When a cluster leaves, only that cluster is replaced.
func TestChooseDoesNotShuffle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clusters := drawn(t)
		if len(clusters) == 0 {
			return
		}
		spec, uid := policy(t, clusters), rapid.StringN(0, 3, -1).Draw(t, "uid")
		before := choose(t, spec, uid, clusters)
		i := rapid.IntRange(0, len(clusters)-1).Draw(t, "who")
		rest := slices.Delete(slices.Clone(clusters), i, i+1)
		left := choose(t, spec, uid, rest, before...)
		require.Subset(t, left, slices.DeleteFunc(slices.Clone(before), func(n string) bool { return n == clusters[i].Name }))

		fewer := choose(t, spec, uid, rest)
		joined := choose(t, spec, uid, clusters, fewer...)
		require.Subset(t, joined, fewer)
	})
}

func TestChooseSpreads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var clusters []splitter.Cluster
		room := map[string]int{}
		for _, c := range drawn(t) {
			c.State = splitter.Placeable
			clusters = append(clusters, c)
			room[c.Labels[zone]]++
		}
		spec := v1alpha1.PlacementPolicySpec{SpreadBy: []string{zone}, MaxClusters: rapid.Int32Range(1, 6).Draw(t, "most")}
		in := map[string]int{}
		for _, name := range choose(t, spec, rapid.StringN(0, 3, -1).Draw(t, "uid"), clusters) {
			i := slices.IndexFunc(clusters, func(c splitter.Cluster) bool { return c.Name == name })
			in[clusters[i].Labels[zone]]++
		}
		for a := range room {
			for b := range room {
				require.True(t, in[a] <= in[b]+1 || in[b] == room[b], "zones %q and %q have %d and %d", a, b, in[a], in[b])
			}
		}
	})
}

// The first label in SpreadBy decides before the second: two clusters of each region are chosen,
// although one region has three zones and the other has one.
func TestChooseSpreadsOverLevels(t *testing.T) {
	var clusters []splitter.Cluster
	for i, where := range [][2]string{{"eu", "1"}, {"eu", "2"}, {"eu", "3"}, {"us", "1"}, {"us", "1"}} {
		clusters = append(clusters, splitter.Cluster{Name: fmt.Sprint("c", i), Labels: map[string]string{region: where[0], zone: where[1]}})
	}
	for i := range 20 {
		got := choose(t, v1alpha1.PlacementPolicySpec{SpreadBy: []string{region, zone}, MaxClusters: 4}, fmt.Sprint(i), clusters)
		require.Subset(t, got, []string{"c3", "c4"}, "two of each region")
	}
}

// Over many objects, each cluster is chosen about equally often.
func TestChooseIsFair(t *testing.T) {
	clusters := []splitter.Cluster{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	count := map[string]int{}
	for i := range 4000 {
		for _, name := range choose(t, v1alpha1.PlacementPolicySpec{MaxClusters: 1}, fmt.Sprint("uid-", i), clusters) {
			count[name]++
		}
	}
	for _, c := range clusters {
		require.InDelta(t, 1000, count[c.Name], 150)
	}
}

func TestChooseCountsAWeightThatCannotBeReadAsAbsent(t *testing.T) {
	for _, weight := range []string{"much", "2x", "-1", "1.5", "2147483648"} {
		bad := splitter.Cluster{Name: "a", Labels: map[string]string{v1alpha1.WeightLabel: weight}}
		require.Equal(t, []string{"a", "b"}, choose(t, v1alpha1.PlacementPolicySpec{}, "", []splitter.Cluster{bad, {Name: "b"}}), weight)
	}
}

// A cluster of weight 0 is chosen only if it has a minimum.
func TestChooseAndWeightZero(t *testing.T) {
	for _, c := range []struct {
		share v1alpha1.ClusterShare
		want  []string
	}{
		{v1alpha1.ClusterShare{Name: "a", Weight: new(int32(1))}, []string{"a", "b"}},
		{v1alpha1.ClusterShare{Name: "a", Weight: new(int32(0))}, []string{"b"}},
		{v1alpha1.ClusterShare{Name: "a", Weight: new(int32(0)), Min: new(int32(1))}, []string{"a", "b"}},
		{v1alpha1.ClusterShare{Name: "a", Min: new(int32(1))}, []string{"a", "b"}},
		{v1alpha1.ClusterShare{Name: "a", Max: new(int32(0))}, []string{"b"}},
	} {
		spec := v1alpha1.PlacementPolicySpec{Clusters: []v1alpha1.ClusterShare{c.share}}
		require.Equal(t, c.want, choose(t, spec, "u", []splitter.Cluster{cluster("a"), cluster("b")}), c.share)
	}
}

func TestChooseRefuses(t *testing.T) {
	_, err := placement.Choose(v1alpha1.PlacementPolicySpec{ClusterSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
	}}, "", nil, nil)
	require.ErrorContains(t, err, "clusterSelector")
	require.Empty(t, choose(t, v1alpha1.PlacementPolicySpec{Mode: v1alpha1.PlacementNone}, "", []splitter.Cluster{{Name: "a"}}, "a"))
}
