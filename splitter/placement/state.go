// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// state is where an object is placed, as its annotations say.
type state struct {
	clusters []string // sorted
	leaving  []string // those of them that are to go
	by       string
	division *division // of an object that is divided
}

// division is how an object is divided: what its policy says of the clusters that it has.
type division struct {
	Mode       v1alpha1.PlacementMode  `json:"mode,omitempty"`
	SpreadBy   []string                `json:"spreadBy,omitempty"`
	Clusters   []v1alpha1.ClusterShare `json:"clusters,omitempty"`
	Dependents bool                    `json:"dependents,omitempty"`
}

func newDivision(spec v1alpha1.PlacementPolicySpec, clusters []string) *division {
	d := &division{Mode: spec.Mode, SpreadBy: spec.SpreadBy, Dependents: spec.Dependents}
	if d.Mode == v1alpha1.PlacementDivide {
		d.Mode = "" // the default
	}
	for _, s := range spec.Clusters {
		if slices.Contains(clusters, s.Name) {
			d.Clusters = append(d.Clusters, s)
		}
	}
	slices.SortFunc(d.Clusters, func(a, b v1alpha1.ClusterShare) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// read reads the state of an object. placed is false if it has never had one. After an error all but the division is
// right.
func read(obj *unstructured.Unstructured) (s state, placed bool, err error) {
	annotations := obj.GetAnnotations()
	_, placed = annotations[v1alpha1.PlacementAnnotation]
	s = state{clusters: split(annotations[v1alpha1.PlacementAnnotation]), by: annotations[v1alpha1.PlacedByAnnotation]}
	for _, c := range split(annotations[v1alpha1.LeavingAnnotation]) {
		if slices.Contains(s.clusters, c) {
			s.leaving = append(s.leaving, c)
		}
	}
	if text := annotations[v1alpha1.DivisionAnnotation]; text != "" {
		d := &division{}
		if err := json.Unmarshal([]byte(text), d); err != nil {
			return s, placed, fmt.Errorf("annotation %s: %w", v1alpha1.DivisionAnnotation, err)
		}
		s.division = d
	}
	return s, placed, nil
}

// split reads a list of clusters. What cannot be the name of one is left out: no API server takes a label with it.
func split(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && len(validation.IsValidLabelValue(name)) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stays are the clusters that are not being left.
func (s state) stays() []string { return without(s.clusters, s.leaving) }

// next is the state that follows: what is wanted, and of what is there the clusters that cannot be left yet. If nothing
// is wanted although something should be, all stays where it is: there is nowhere to go.
func next(wanted, there []string, none bool, held func(cluster string) bool) (clusters, leaving []string) {
	if len(wanted) == 0 && !none {
		return there, nil
	}
	clusters = slices.Clone(wanted)
	for _, c := range without(there, wanted) {
		if held(c) {
			clusters, leaving = append(clusters, c), append(leaving, c)
		}
	}
	slices.Sort(clusters)
	return clusters, leaving
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(c string) bool { return slices.Contains(other, c) })
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// metadata is what an object's metadata is to be changed by for it to have the state; null removes. It is empty if it has
// it already. labeled says whether it has a label per cluster; of those only what the state before has is changed.
func (s state) metadata(obj *unstructured.Unstructured, before state, labeled bool) (map[string]any, error) {
	annotations := map[string]any{
		v1alpha1.PlacementAnnotation: strings.Join(s.clusters, ","),
		v1alpha1.PlacedByAnnotation:  text(s.by),
		v1alpha1.LeavingAnnotation:   text(strings.Join(s.leaving, ",")),
		v1alpha1.DivisionAnnotation:  nil,
	}
	if s.by == v1alpha1.PlacedByReference && len(s.clusters) == 0 {
		// Like an object that no workload ever referred to: what it ends as does not depend on its past.
		annotations[v1alpha1.PlacementAnnotation], annotations[v1alpha1.PlacedByAnnotation] = nil, nil
	}
	if s.division != nil {
		data, err := json.Marshal(s.division)
		if err != nil {
			return nil, err
		}
		annotations[v1alpha1.DivisionAnnotation] = string(data)
	}
	labels := map[string]any{}
	if labeled {
		for _, c := range before.clusters {
			labels[syncerv1alpha1.StateLabelPrefix+c] = nil
		}
		for _, c := range s.clusters {
			labels[syncerv1alpha1.StateLabelPrefix+c] = syncerv1alpha1.StateSync
		}
	}
	change := map[string]any{}
	if a := changed(obj.GetAnnotations(), annotations); len(a) > 0 {
		change["annotations"] = a
	}
	if l := changed(obj.GetLabels(), labels); len(l) > 0 {
		change["labels"] = l
	}
	return change, nil
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// changed is what of wanted is not so already.
func changed(is map[string]string, wanted map[string]any) map[string]any {
	change := map[string]any{}
	for k, v := range wanted {
		now, ok := is[k]
		if v == nil && ok || v != nil && (!ok || now != v) {
			change[k] = v
		}
	}
	return change
}
