// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// StatefulSets returns the Kind of apps/v1 StatefulSets. The condition Available reports whether all replicas are
// available, and which clusters lack some.
//
// By default the ordinals of each shard's pods begin at spec.ordinals.start of the StatefulSet. The pod names are still
// unique, because they begin with the shard's name. If the StatefulSet has the OrdinalsPerClusterAnnotation of
// splitter/v1alpha1, the ordinals are unique too: each cluster has a range of ordinals, which never changes. The size of
// the range bounds the replicas of the cluster.
//
// A replica that moves gets new, empty volumes. So the replicas of a StatefulSet with
// volumeClaimTemplates stay in their clusters, also in one that drains, is unreachable or is no longer
// placed, until the VolumesAnnotation of splitter/v1alpha1 names the cluster. Meanwhile ConditionPlaced
// names the clusters, with the reason VolumesHeld. They leave nevertheless if fewer replicas are
// desired, if minima of other clusters need them, if the cluster no longer exists, and in the mode
// Duplicate.
func StatefulSets() Kind { return statefulSets{newReplicated(workload.BuiltinType("statefulsets"))} }

type statefulSets struct{ replicated }

func (k statefulSets) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	ranges, err := ordinalsOf(parent, have)
	if err != nil {
		return Plan{}, nil, err
	}
	var held []string
	if hasVolumes(parent) {
		if !mayLeave(parent, "*") {
			d.Moves = 0 // a move for balance would leave volumes behind
		}
		shares, held = keepVolumes(parent, d, shares, have)
	}
	plan, shards, err := k.replicated.Cut(parent, d, ranges.bound(shares, have), have)
	if err != nil {
		return Plan{}, nil, err
	}
	plan.Held, plan.SameOrdinals = held, ranges.shared(have)
	return plan, shards, ranges.number(shards)
}

// number gives the shards their ranges of ordinals, as Cut does.
func (k statefulSets) number(parent *unstructured.Unstructured, shards, have []Shard) error {
	ranges, err := ordinalsOf(parent, have)
	if err != nil {
		return err
	}
	return ranges.number(shards)
}

// bound returns the shares that the ranges of ordinals permit.
func (k statefulSets) bound(parent *unstructured.Unstructured, shares []Share, have []Shard) []Share {
	ranges, err := ordinalsOf(parent, have)
	if err != nil {
		return shares // Cut returns the error
	}
	return ranges.bound(shares, have)
}

// record returns the OrdinalsAnnotation of the parent, with the ranges of all present and earlier shards; nil if there are
// no ranges.
func (k statefulSets) record(parent *unstructured.Unstructured, shards []Shard) map[string]string {
	value := parent.GetAnnotations()[v1alpha1.OrdinalsAnnotation]
	if recorded, err := ordinalsOf(parent, shards); err == nil {
		value = writeSpans(recorded.ranges)
	}
	if value == "" {
		return nil
	}
	return map[string]string{v1alpha1.OrdinalsAnnotation: value}
}
