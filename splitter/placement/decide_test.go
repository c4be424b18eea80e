// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func TestDecide(t *testing.T) {
	ready := func(names ...string) (list []splitter.Cluster) {
		for _, name := range names {
			list = append(list, splitter.Cluster{Name: name, Ready: metav1.ConditionTrue})
		}
		return list
	}
	all := newPolicy("all", v1alpha1.PlacementPolicySpec{Mode: v1alpha1.PlacementDuplicate})
	none := newPolicy("none", v1alpha1.PlacementPolicySpec{Mode: v1alpha1.PlacementNone})
	in := func(clusters ...string) state { return state{clusters: clusters, by: "all"} }
	for name, tc := range map[string]struct {
		facts   facts
		held    []string // clusters in which the object stays for now although it has to leave them
		labeled string   // a cluster whose label another client has set
		want    state
		not     bool // the object is not placed
	}{
		"chosen":                              {facts: facts{policy: &all, clusters: ready("a", "b")}, want: in("a", "b")},
		"no cluster can be chosen: stays":     {facts: facts{policy: &all, before: in("a", "b"), placed: true, occupied: []string{"a", "b"}}, want: in("a", "b")},
		"none is wanted: leaves":              {facts: facts{policy: &none, clusters: ready("a"), before: in("a"), placed: true, occupied: []string{"a"}}, want: state{by: "none"}},
		"none is wanted: held":                {facts: facts{policy: &none, before: in("a"), placed: true, occupied: []string{"a"}}, held: []string{"a"}, want: state{by: "none", clusters: []string{"a"}, leaving: []string{"a"}}},
		"a cluster is gone: leaves":           {facts: facts{policy: &all, clusters: ready("a"), before: in("a", "b"), placed: true, occupied: []string{"a", "b"}}, want: in("a")},
		"no policy, never placed":             {facts: facts{clusters: ready("a")}, not: true},
		"the policy is gone: stays":           {facts: facts{clusters: ready("a", "b"), before: in("b"), placed: true, occupied: []string{"b"}}, want: in("b")},
		"the policy is gone: leaves on":       {facts: facts{before: state{by: "all", clusters: []string{"b"}, leaving: []string{"b"}}, placed: true, occupied: []string{"b"}}, want: state{by: "all"}},
		"follows workloads":                   {facts: facts{follows: []string{"b"}}, want: state{by: v1alpha1.PlacedByReference, clusters: []string{"b"}}},
		"no workload refers to it any more":   {facts: facts{before: state{by: v1alpha1.PlacedByReference, clusters: []string{"b"}}, placed: true, occupied: []string{"b"}}, want: state{by: v1alpha1.PlacedByReference}},
		"another client's label is respected": {facts: facts{policy: &all, clusters: ready("a", "b")}, labeled: "a", want: in("b")},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.facts
			f.obj, f.fresh = &unstructured.Unstructured{Object: map[string]any{}}, true
			if tc.labeled != "" {
				f.obj.SetLabels(map[string]string{syncerv1alpha1.StateLabelPrefix + tc.labeled: "x"})
			}
			f.held = func(cluster string) bool { return slices.Contains(tc.held, cluster) }
			after, ok, err := f.decide()
			require.NoError(t, err)
			require.Equal(t, !tc.not, ok)
			require.ElementsMatch(t, tc.want.clusters, after.clusters)
			require.ElementsMatch(t, tc.want.leaving, after.leaving)
			require.Equal(t, tc.want.by, after.by)
		})
	}
	t.Run("unknown workloads: nothing is taken away", func(t *testing.T) {
		f := facts{
			obj: &unstructured.Unstructured{Object: map[string]any{}}, placed: true, occupied: []string{"b"},
			before: state{by: v1alpha1.PlacedByReference, clusters: []string{"b"}},
			held:   func(string) bool { return false },
		}
		after, ok, err := f.decide()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []string{"b"}, after.clusters)
	})
}

// Whatever the state of an object and the policy, a suspended policy changes nothing.
func TestASuspendedPolicyDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		spec.Suspend = true
		p := newPolicy("p", spec)
		f := facts{obj: drawObject(t), clusters: drawClusters(t), policy: &p, divided: rapid.Bool().Draw(t, "divided"), fresh: rapid.Bool().Draw(t, "fresh"), held: func(string) bool { return false }}
		f.before, f.placed, _ = read(f.obj)
		f.occupied = f.before.clusters
		_, ok, err := f.decide()
		require.NoError(t, err)
		require.False(t, ok)
	})
}
