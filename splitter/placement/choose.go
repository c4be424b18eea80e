// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Choose returns the clusters for an object, sorted by name: all clusters that the policy allows,
// or MaxClusters of them. It is pure, and does not depend on the order of the names in clusters and
// present.
//
// present lists the clusters that the object has. These are chosen first. A cluster that joins
// therefore replaces no other, and when clusters leave, only those clusters are replaced. Choose
// takes each further cluster from the group of SpreadBy with the fewest chosen clusters. Within a
// group a hash of uid and name decides: always in the same way for one object, and evenly over many
// objects.
//
// Choose meets all bounds in Groups, and replaces present clusters only if the bounds require it. It
// returns no cluster if no choice meets the bounds.
//
// A Holding cluster is chosen only if it is present. The same holds for a cluster with a taint
// NoSchedule or NoExecute that the policy does not tolerate forever. A cluster with a taint
// PreferNoSchedule that the policy does not tolerate is chosen after all others: it has an effect only
// if MaxClusters or Groups leave clusters out. Choose has no clock: pass the clusters that Tolerate
// returns, in which a cluster is Draining when a taint NoExecute requires it.
//
// A Draining cluster is never chosen, nor is a cluster whose share in the policy has the maximum zero,
// or the weight zero and no minimum. A weight label that cannot be read counts as absent. Choose fails
// if the policy's ClusterSelector cannot be read, or if a key of Groups is not in SpreadBy.
func Choose(spec v1alpha1.PlacementPolicySpec, uid types.UID, clusters []splitter.Cluster, present []string) ([]string, error) {
	names, _, err := choose(spec, uid, clusters, present)
	return names, err
}

// choose is Choose. If no choice meets the bounds in Groups, missing is a bound that cannot be met.
func choose(spec v1alpha1.PlacementPolicySpec, uid types.UID, clusters []splitter.Cluster, present []string) (names []string, missing *shortage, err error) {
	if spec.Mode == v1alpha1.PlacementNone {
		return nil, nil, nil
	}
	selector, err := selectorOf(spec.ClusterSelector)
	if err != nil {
		return nil, nil, fmt.Errorf("clusterSelector: %w", err)
	}
	s, err := newSelection(spec, uid)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range clusters {
		is := slices.Contains(present, c.Name)
		holds := c.State == splitter.Holding || repels(spec.Tolerations, c)
		if c.State == splitter.Draining || holds && !is || !selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		if !claim(spec.Clusters, c).nothing() {
			s.offer(c, is, avoids(spec.Tolerations, c))
		}
	}
	if missing = s.take(); missing != nil {
		return nil, missing, nil
	}
	for _, c := range s.chosen {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names, nil, nil
}

// selectorOf converts a label selector. A nil selector selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// share is the weight and bounds of a cluster, from the policy and the cluster's label.
type share struct {
	weight *int64
	min    int64
	max    *int64
}

func (s share) nothing() bool {
	return s.max != nil && *s.max == 0 || s.weight != nil && *s.weight == 0 && s.min == 0
}

// claim returns the weight and bounds of a cluster. A weight in the policy takes precedence over
// the cluster's label.
func claim(shares []v1alpha1.ClusterShare, c splitter.Cluster) (s share) {
	s.weight, _ = c.Weight() // an invalid label of one cluster must not block the others
	for _, p := range shares {
		if p.Name != c.Name {
			continue
		}
		if p.Weight != nil {
			s.weight = new(int64(*p.Weight))
		}
		if p.Min != nil {
			s.min = int64(*p.Min)
		}
		if p.Max != nil {
			s.max = new(int64(*p.Max))
		}
	}
	return s
}
