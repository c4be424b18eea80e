// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

func TestPlace(t *testing.T) {
	in := func(name, zoneName string, state splitter.State) splitter.Cluster {
		return splitter.Cluster{Name: name, State: state, Labels: map[string]string{zone: zoneName}}
	}
	a, b, c := in("a", "1", splitter.Placeable), in("b", "1", splitter.Placeable), in("c", "2", splitter.Placeable)
	small, drains := a, in("a", "1", splitter.Draining)
	small.Pods = new(int64(2))
	ten := func(c splitter.Cluster, weight int) splitter.Cluster {
		c.Pods, c.Labels = new(int64(10)), map[string]string{zone: c.Labels[zone], v1alpha1.WeightLabel: fmt.Sprint(weight)}
		return c
	}
	misread := b
	misread.Labels = map[string]string{v1alpha1.WeightLabel: "2x"}
	for name, test := range map[string]struct {
		annotations map[string]any
		clusters    []splitter.Cluster
		present     map[string]int64
		want        map[string]int64
		unplaced    int64
	}{
		"only where it is placed": {map[string]any{"placement": "a,c"}, []splitter.Cluster{a, b, c}, nil, map[string]int64{"a": 6, "c": 6}, 0},
		"weights":                 {map[string]any{"placement": "a,c", "division": `{"clusters":[{"name":"c","weight":2}]}`}, []splitter.Cluster{a, b, c}, nil, map[string]int64{"a": 4, "c": 8}, 0},
		"a weight that is none":   {map[string]any{"placement": "a,b"}, []splitter.Cluster{a, misread}, nil, map[string]int64{"a": 6, "b": 6}, 0},
		"bounds":                  {map[string]any{"placement": "a,b", "division": `{"clusters":[{"name":"a","max":2},{"name":"b","max":3}]}`}, []splitter.Cluster{a, b, c}, nil, map[string]int64{"a": 2, "b": 3}, 7},
		"zones":                   {map[string]any{"placement": "a,b,c", "division": `{"spreadBy":["` + zone + `"]}`}, []splitter.Cluster{a, b, c}, nil, map[string]int64{"a": 3, "b": 3, "c": 6}, 0},
		"room":                    {map[string]any{"placement": "a,b"}, []splitter.Cluster{small, b}, nil, map[string]int64{"a": 2, "b": 10}, 0},
		"room that it has taken":  {map[string]any{"placement": "a,b"}, []splitter.Cluster{small, b}, map[string]int64{"a": 2, "b": 10}, map[string]int64{"a": 2, "b": 10}, 0},
		"twice":                   {map[string]any{"placement": "a,b", "division": `{"mode":"Duplicate","spreadBy":["` + zone + `"]}`}, []splitter.Cluster{a, b, c}, nil, map[string]int64{"a": 12, "b": 12}, 0},
		"leaves":                  {map[string]any{"placement": "a,b", "leaving": "a"}, []splitter.Cluster{a, b}, map[string]int64{"a": 12}, map[string]int64{"b": 12}, 0},
		"leaves one of several":   {map[string]any{"placement": "a,b", "leaving": "a", "division": `{"mode":"Duplicate"}`}, []splitter.Cluster{a, b}, map[string]int64{"a": 12}, map[string]int64{"b": 12}, 0},
		"leaves what is gone":     {map[string]any{"placement": "a,b", "leaving": "a"}, []splitter.Cluster{b}, map[string]int64{"a": 12}, map[string]int64{"b": 12}, 0},
		"drains, with no place":   {map[string]any{"placement": "a"}, []splitter.Cluster{drains, b}, map[string]int64{"a": 12}, map[string]int64{"a": 12}, 0},
		"is gone, with no place":  {map[string]any{"placement": "a"}, []splitter.Cluster{b}, map[string]int64{"a": 12}, map[string]int64{"a": 12}, 0},
		"is gone, with another":   {map[string]any{"placement": "a,b"}, []splitter.Cluster{b}, map[string]int64{"a": 5, "b": 5}, map[string]int64{"a": 5, "b": 7}, 0},
		"fewest":                  {map[string]any{"placement": "a,b,c", "division": `{"mode":"Fewest"}`}, []splitter.Cluster{ten(a, 3), ten(b, 2), ten(c, 1)}, nil, map[string]int64{"a": 10, "b": 2}, 0},
		"fewest, by weight":       {map[string]any{"placement": "a,b,c", "division": `{"mode":"FewestDivide"}`}, []splitter.Cluster{ten(a, 3), ten(b, 2), ten(c, 1)}, nil, map[string]int64{"a": 7, "b": 5}, 0},
		"fewest zones":            {map[string]any{"placement": "a,b,c", "division": `{"mode":"Fewest","spreadBy":["` + zone + `"]}`}, []splitter.Cluster{ten(a, 1), ten(b, 2), ten(c, 3)}, nil, map[string]int64{"a": 2, "b": 10}, 0},
		"fill":                    {map[string]any{"placement": "a,b,c", "division": `{"mode":"Fill"}`}, []splitter.Cluster{ten(a, 1), ten(b, 2), ten(c, 3)}, nil, map[string]int64{"b": 2, "c": 10}, 0},
		"nowhere":                 {map[string]any{"placement": ""}, []splitter.Cluster{a, b}, nil, nil, 12},
	} {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]any{}
			for k, v := range test.annotations {
				annotations["splitter.atoll.dev/"+k] = v
			}
			parent := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"replicas": int64(12)}}}
			d, shares, err := placement.Place(parent, test.clusters)
			require.NoError(t, err)
			d.Replicas = 12
			plan, err := splitter.Divide(d, present(shares, test.present))
			require.NoError(t, err)
			got := map[string]int64{}
			for _, a := range plan.Shards {
				if a.Replicas > 0 {
					got[a.Cluster] = a.Replicas
				}
			}
			if test.want == nil {
				test.want = map[string]int64{}
			}
			require.Equal(t, test.want, got)
			require.Equal(t, test.unplaced, plan.Unplaced)
		})
	}
}

// present sets the field Present of each share, as a Kind does.
func present(shares []splitter.Share, there map[string]int64) []splitter.Share {
	for i := range shares {
		if s := &shares[i]; s.Group {
			s.Members = present(s.Members, there)
		} else {
			s.Present = there[s.Name]
		}
	}
	return shares
}

func TestPlaceUndecided(t *testing.T) {
	_, _, err := placement.Place(&unstructured.Unstructured{Object: map[string]any{}}, nil)
	require.ErrorIs(t, err, splitter.ErrUndecided)
	_, _, err = placement.Place(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"splitter.atoll.dev/placement": "a", "splitter.atoll.dev/division": "{",
	}}}}, nil)
	require.ErrorContains(t, err, "splitter.atoll.dev/division")
}

// The rollout of a policy reaches the Splitter through the annotations of the workload.
func TestPlaceRollout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("canary", "{rollout: {order: [b], maxClusters: 1, moveSurge: 3}}")
		w.create(deployments, deployment("web", 4, ""))
		a, b := cluster("a"), cluster("b")
		w.startPlacement(placement.Options{}, a, b)
		require.Equal(t, []string{"NONE -> a,b"}, w.happened("web"))
		d, _, err := placement.Place(w.get(deployments, "web"), []splitter.Cluster{a, b})
		require.NoError(t, err)
		require.Equal(t, splitter.Rollout{Order: []string{"b"}, Clusters: 1, MoveSurge: 3}, d.Rollout)
	})
}
