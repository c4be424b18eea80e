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

// state is the placement that the annotations of an object record.
type state struct {
	clusters []string // sorted
	leaving  []string // the elements of clusters that the object is leaving
	by       string
	division *division // nil unless a Splitter divides the object
}

// division is the part of a policy that applies to an object's clusters.
type division struct {
	Mode        v1alpha1.PlacementMode     `json:"mode,omitempty"`
	SpreadBy    []string                   `json:"spreadBy,omitempty"`
	Clusters    []v1alpha1.ClusterShare    `json:"clusters,omitempty"`
	Tolerations []v1alpha1.Toleration      `json:"tolerations,omitempty"`
	Dependents  bool                       `json:"dependents,omitempty"`
	Rollout     *v1alpha1.PlacementRollout `json:"rollout,omitempty"`
}

func newDivision(spec v1alpha1.PlacementPolicySpec, clusters []string) *division {
	d := &division{Mode: spec.Mode, SpreadBy: spec.SpreadBy, Tolerations: spec.Tolerations, Dependents: spec.Dependents, Rollout: spec.Rollout}
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

// read reads the state of an object from its annotations. placed is false if the object has no
// placement annotation. On an error, all of the state but the division is valid.
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

// split reads a comma-separated list of clusters. It skips names that are not valid label values:
// no API server would accept the label of such a cluster.
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

// stays returns those clusters of the state that the object is not leaving.
func (s state) stays() []string { return without(s.clusters, s.leaving) }

// next returns the clusters of the next state, and those of them that the object is leaving. The next
// state has the clusters in wanted, and those present clusters for which held returns true; of these the
// object is leaving the clusters that are not in wanted. If wanted is empty, none decides: the object is
// to leave all its clusters, or no cluster could be chosen and it stays in its present ones.
func next(wanted, present []string, none bool, held func(cluster string) bool) (clusters, leaving []string) {
	if len(wanted) == 0 && !none {
		return present, nil
	}
	clusters = slices.Clone(wanted)
	for _, c := range without(present, wanted) {
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

// metadata returns the merge patch that changes an object's metadata from the state before to s. It
// is empty if nothing differs. labeled is true for objects with a label per cluster; the patch
// removes only labels of clusters in before.
func (s state) metadata(obj *unstructured.Unstructured, before state, labeled bool) (map[string]any, error) {
	annotations := map[string]any{
		v1alpha1.PlacementAnnotation: strings.Join(s.clusters, ","),
		v1alpha1.PlacedByAnnotation:  text(s.by),
		v1alpha1.LeavingAnnotation:   text(strings.Join(s.leaving, ",")),
		v1alpha1.DivisionAnnotation:  nil,
	}
	if s.by == v1alpha1.PlacedByReference && len(s.clusters) == 0 {
		// Leave no annotations, as on an object that no workload has ever referred to.
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

// changed compares is, the present entries, with wanted. It returns the entries of wanted that differ.
// A nil value in wanted means that the key must be absent.
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
