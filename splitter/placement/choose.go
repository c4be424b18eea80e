// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
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
// A Holding cluster is chosen only if it is present. So is a cluster with a taint NoSchedule or
// NoExecute that the policy does not tolerate forever. A cluster with a taint PreferNoSchedule that the
// policy does not tolerate is chosen only if it is present, or if the others are fewer than
// MaxClusters. Use Tolerate first to leave clusters when NoExecute requires it.
//
// A Draining cluster is never chosen, nor is a
// cluster whose share in the policy has the maximum zero, or the weight zero and no minimum. A
// weight label that cannot be read counts as absent. Choose fails if the policy's ClusterSelector
// cannot be read.
func Choose(spec v1alpha1.PlacementPolicySpec, uid types.UID, clusters []splitter.Cluster, present []string) ([]string, error) {
	if spec.Mode == v1alpha1.PlacementNone {
		return nil, nil
	}
	selector, err := selectorOf(spec.ClusterSelector)
	if err != nil {
		return nil, fmt.Errorf("clusterSelector: %w", err)
	}
	var candidates []splitter.Cluster
	for _, c := range clusters {
		is := slices.Contains(present, c.Name)
		holds := c.State == splitter.Holding || repels(spec.Tolerations, c)
		if c.State == splitter.Draining || holds && !is || !selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		if !claim(spec.Clusters, c).nothing() {
			candidates = append(candidates, c)
		}
	}
	candidates = take(spec, uid, candidates, present)
	var names []string
	for _, c := range candidates {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names, nil
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

// take chooses MaxClusters of the clusters, or all of them if it is zero or they are fewer. It prefers
// the clusters in present, then those without a taint PreferNoSchedule.
func take(spec v1alpha1.PlacementPolicySpec, uid types.UID, clusters []splitter.Cluster, present []string) []splitter.Cluster {
	n := int(spec.MaxClusters)
	if n <= 0 || len(clusters) <= n {
		return clusters
	}
	var chosen []splitter.Cluster
	for _, stays := range []bool{true, false} {
		for _, avoided := range []bool{false, true} {
			from := filter(clusters, func(c splitter.Cluster) bool {
				return slices.Contains(present, c.Name) == stays && avoids(spec.Tolerations, c) == avoided
			})
			chosen = spread(chosen, slices.Collect(from), n, spec.SpreadBy, uid)
		}
	}
	return chosen
}

func filter(clusters []splitter.Cluster, keep func(splitter.Cluster) bool) func(func(splitter.Cluster) bool) {
	return func(yield func(splitter.Cluster) bool) {
		for _, c := range clusters {
			if keep(c) && !yield(c) {
				return
			}
		}
	}
}

// spread adds clusters to chosen until it has n. It takes each next cluster from the group with the
// fewest chosen clusters: first it compares the groups of the first label in by, then those of the
// next label.
func spread(chosen, from []splitter.Cluster, n int, by []string, uid types.UID) []splitter.Cluster {
	chosen = slices.Clone(chosen)
	has := map[string]int{}
	count := func(c splitter.Cluster) {
		for depth := range by {
			has[group(c, by[:depth+1])]++
		}
	}
	for _, c := range chosen {
		count(c)
	}
	rest := slices.Clone(from)
	for len(chosen) < n && len(rest) > 0 {
		next := slices.MinFunc(rest, func(a, b splitter.Cluster) int {
			for depth := range by {
				if d := cmp.Compare(has[group(a, by[:depth+1])], has[group(b, by[:depth+1])]); d != 0 {
					return d
				}
			}
			return cmp.Or(cmp.Compare(rank(uid, a.Name), rank(uid, b.Name)), cmp.Compare(a.Name, b.Name))
		})
		count(next)
		chosen = append(chosen, next)
		rest = slices.DeleteFunc(rest, func(c splitter.Cluster) bool { return c.Name == next.Name })
	}
	return chosen
}

// unlabeled is the group of the clusters without the label. It is not a valid label value.
const unlabeled = "-"

// groupLabel returns the value of a cluster's label, or unlabeled if the cluster does not have the
// label.
func groupLabel(c splitter.Cluster, key string) string { return cmp.Or(c.Labels[key], unlabeled) }

// group returns the path of a cluster's group: the values of the labels in by, joined by slashes.
func group(c splitter.Cluster, by []string) string {
	path := ""
	for _, key := range by {
		path += "/" + groupLabel(c, key)
	}
	return path
}

func rank(uid types.UID, name string) uint64 {
	sum := sha256.Sum256([]byte(string(uid) + "\x00" + name))
	return binary.BigEndian.Uint64(sum[:])
}
