// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var someClusters = []string{"a", "b", "c", "d"}

func drawClusters(t *rapid.T) []splitter.Cluster {
	var list []splitter.Cluster
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someClusters), 0, 4, rapid.ID[string]).Draw(t, "clusters") {
		list = append(list, splitter.Cluster{
			Name: name, Labels: map[string]string{"zone": rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "zone"), v1alpha1.WeightLabel: rapid.SampledFrom([]string{"", "2", "0", "many"}).Draw(t, "weight")},
			State:  rapid.SampledFrom([]splitter.State{splitter.Placeable, splitter.Placeable, splitter.Holding, splitter.Draining}).Draw(t, "state"),
			Taints: drawTaints(t, time.Now()),
		})
	}
	return list
}

func drawSpec(t *rapid.T) v1alpha1.PlacementPolicySpec {
	spec := v1alpha1.PlacementPolicySpec{
		Mode:        rapid.SampledFrom([]v1alpha1.PlacementMode{"", v1alpha1.PlacementDivide, v1alpha1.PlacementFewest, v1alpha1.PlacementFewestDivide, v1alpha1.PlacementFill, v1alpha1.PlacementDuplicate, v1alpha1.PlacementNone}).Draw(t, "mode"),
		MaxClusters: rapid.Int32Range(0, 3).Draw(t, "most"), Dependents: rapid.Bool().Draw(t, "dependents"),
		SpreadBy:    rapid.SampledFrom([][]string{nil, {"zone"}, {"zone", "host"}}).Draw(t, "groups"),
		Tolerations: drawTolerations(t),
	}
	if spec.SpreadBy != nil && rapid.Bool().Draw(t, "bounded") {
		spec.Groups = []v1alpha1.GroupBounds{{Key: "zone", MinGroups: rapid.Int32Range(0, 3).Draw(t, "least"), MaxClusters: rapid.Int32Range(0, 2).Draw(t, "per group")}}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someClusters), 0, 2, rapid.ID[string]).Draw(t, "shares") {
		spec.Clusters = append(spec.Clusters, v1alpha1.ClusterShare{Name: name, Weight: new(rapid.Int32Range(0, 2).Draw(t, "weight")), Max: new(rapid.Int32Range(0, 2).Draw(t, "max"))})
	}
	return spec
}

// drawObject draws an object with arbitrary values of the Controller's annotations and labels.
func drawObject(t *rapid.T) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetNamespace("default")
	obj.SetName("x")
	obj.SetUID("uid")
	lists := []string{"", "a", "b,a", "a,a,nowhere", ",,", " c , a", "/", "{"}
	annotations := map[string]string{}
	for _, mark := range []struct {
		name   string
		values []string
	}{
		{v1alpha1.PlacementAnnotation, lists}, {v1alpha1.LeavingAnnotation, lists},
		{v1alpha1.PlacedByAnnotation, []string{"", "p", "gone", v1alpha1.PlacedByReference, v1alpha1.PlacedByDefault}},
		{v1alpha1.DivisionAnnotation, []string{"", "{", "null", "[]", `{"mode":"Odd"}`, `{"clusters":[{"name":"a"}],"dependents":true}`}},
	} {
		if rapid.Bool().Draw(t, "has "+mark.name) {
			annotations[mark.name] = rapid.SampledFrom(mark.values).Draw(t, mark.name)
		}
	}
	labels := map[string]string{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someClusters), 0, 2, rapid.ID[string]).Draw(t, "labels") {
		labels[syncerv1alpha1.StateLabelPrefix+name] = rapid.SampledFrom([]string{"", "Sync", "Other"}).Draw(t, "label")
	}
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
	return obj
}

// merge applies a merge patch to a map of strings, as an API server does.
func merge(is map[string]string, change any) map[string]string {
	all := map[string]string{}
	for k, v := range is {
		all[k] = v
	}
	fields, _ := change.(map[string]any)
	for k, v := range fields {
		if v == nil {
			delete(all, k)
		} else {
			all[k] = v.(string)
		}
	}
	return all
}

// An object has arbitrary values in the Controller's annotations and labels. The test applies each
// decision to the object; one of the first five decisions changes nothing. Then the object is
// leaving no cluster, and the labels of other clients are as before. If a policy selects the object
// and can choose a cluster, the object is placed in the clusters that the policy chooses.
func TestStatesOfPlacements(t *testing.T) {
	most, states := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		obj, list, spec := drawObject(t), drawClusters(t), drawSpec(t)
		all := &policies{of: map[string][]policy{}}
		governed := rapid.IntRange(0, 4).Draw(t, "governed") > 0
		if governed {
			p := newPolicy("p", spec)
			p.selector, p.err = selectorOf(nil)
			require.NoError(t, p.err)
			all.of["default"] = []policy{p}
		}
		c := &Controller{policies: all, index: newIndex(), left: map[string]map[string]time.Time{}}
		k := &kind{divided: rapid.Bool().Draw(t, "divided")}
		others := map[string]string{}
		if before, _, _ := read(obj); !k.divided {
			for label, v := range obj.GetLabels() {
				if !slices.Contains(before.clusters, label[len(syncerv1alpha1.StateLabelPrefix):]) {
					others[label] = v
				}
			}
		} else {
			obj.SetLabels(nil) // with a label, the object would count as placed by another client
		}
		for step := 1; ; step++ {
			require.Less(t, step, 6, "no rest")
			var again time.Duration
			f, err := c.observe(k, "key", obj, list, &again)
			require.NoError(t, err)
			after, ok, err := f.decide()
			require.NoError(t, err)
			if !ok {
				require.False(t, governed)
				return
			}
			change, err := after.metadata(obj, f.before, !k.divided)
			require.NoError(t, err)
			if len(change) == 0 {
				most = max(most, step)
				break
			}
			obj.SetAnnotations(merge(obj.GetAnnotations(), change["annotations"]))
			obj.SetLabels(merge(obj.GetLabels(), change["labels"]))
		}
		is, _, err := read(obj)
		require.NoError(t, err, "the division can be read")
		require.Empty(t, is.leaving, "nothing holds it anywhere")
		for label, v := range others {
			require.Equal(t, v, obj.GetLabels()[label], "another client's label")
		}
		if !k.divided {
			for _, name := range is.clusters {
				require.Equal(t, syncerv1alpha1.StateSync, obj.GetLabels()[syncerv1alpha1.StateLabelPrefix+name])
			}
			require.Nil(t, is.division)
		}
		if !governed {
			return
		}
		require.Equal(t, "p", is.by)
		list, _ = Tolerate(spec.Tolerations, list, time.Now())
		chosen, err := Choose(spec, obj.GetUID(), list, is.clusters)
		require.NoError(t, err)
		chosen = slices.DeleteFunc(chosen, func(name string) bool {
			_, taken := others[syncerv1alpha1.StateLabelPrefix+name]
			return taken
		})
		if len(chosen) > 0 || spec.Mode == v1alpha1.PlacementNone {
			require.ElementsMatch(t, chosen, is.clusters)
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "placement", fmt.Sprintf("- placement: %d states of an object, clusters and a policy; at most %d decisions until one changes nothing\n", states, most))
	}
}
