// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// keepVolumes returns a copy of the shares in which no replica leaves the cluster that has its volumes, and the names of
// the clusters that keep more replicas than they should. Replicas may leave a cluster that the parent's VolumesAnnotation
// names or that no longer exists. The mode Duplicate changes nothing. It is pure.
func keepVolumes(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) ([]Share, []string) {
	present := map[string]int64{}
	for _, s := range have {
		n := numberOr(s.Object, 1, "spec", "replicas")
		if s.exists() && n > 0 && !mayLeave(parent, s.Cluster) {
			present[s.Cluster] = n
		}
	}
	if len(present) == 0 || d.Mode == Duplicate {
		return shares, nil
	}
	listed := map[string]bool{}
	for _, s := range clusters(shares) {
		listed[s.Name] = true
	}
	shares, held := raised(shares, present)
	for _, s := range have {
		if n := present[s.Cluster]; n > 0 && !listed[s.Cluster] && s.Lost {
			shares, held = append(shares, Share{Name: s.Cluster, Weight: new(int64(0)), Max: &n, Hold: true}), append(held, s.Cluster)
		}
	}
	slices.Sort(held)
	return shares, held
}

// raised returns a copy of the shares in which each maximum below the present replicas is raised to them, and the names
// of these clusters.
func raised(shares []Share, present map[string]int64) (all []Share, names []string) {
	all = eachCluster(shares, func(s *Share) {
		if n := present[s.Name]; s.Max != nil && *s.Max < n {
			s.Weight, s.Min, s.Max, s.Hold = new(int64(0)), 0, &n, true
			names = append(names, s.Name)
		}
	})
	return all, names
}

// hasVolumes reports whether each replica of a StatefulSet has volumes of its own.
func hasVolumes(set *unstructured.Unstructured) bool {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	return len(templates) > 0
}

// mayLeave reports whether replicas may leave a cluster although their volumes stay there: VolumesAnnotation permits it.
func mayLeave(parent *unstructured.Unstructured, cluster string) bool {
	for name := range strings.SplitSeq(parent.GetAnnotations()[v1alpha1.VolumesAnnotation], ",") {
		if name = strings.TrimSpace(name); name == cluster || name == "*" {
			return true
		}
	}
	return false
}

// holds returns the message about the clusters that keep replicas because of their volumes.
func holds(held []string) string {
	return fmt.Sprintf("replicas stay with their volumes in clusters that they should leave: %s: copy the volumes, or decide that they may be left behind, then name the clusters in the annotation %s",
		loop.Brief(held, ", "), v1alpha1.VolumesAnnotation)
}
