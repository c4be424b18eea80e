// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Placement returns the claims of the clusters that a parent is divided over, and a Demand with
// Mode and Moves. The Splitter later fills in Replicas and UID of the Demand, and Present of the
// claims. A Placement must be pure, must not block, and must be safe for concurrent use. A cluster
// that it leaves out loses its replicas. If it returns Duplicate and no shares, the Splitter
// deletes every shard, without regard to available replicas. While it returns an error that wraps
// ErrUndecided, the Splitter does not change the parent's shards. The Splitter calls it again when
// the parent, its shards or the clusters change, and after Again. docs/extend.md has an example.
type Placement func(parent *unstructured.Unstructured, clusters []Cluster) (Demand, []Share, error)

// ErrUndecided is wrapped by the error of a Placement that cannot decide about a parent yet. Return
// it instead of an empty division: the Splitter then leaves the parent's shards as they are.
var ErrUndecided = errors.New("not placed yet")

// Everywhere is the Placement that divides a parent over all clusters that may have replicas, by
// the weights in their WeightLabel. A label that cannot be read counts as absent, and delays no
// other cluster; see Observer.Cluster. At most a quarter of the replicas move at once. No cluster
// gets more replicas than the number of pods that it can hold, but present replicas stay.
func Everywhere(parent *unstructured.Unstructured, clusters []Cluster) (Demand, []Share, error) {
	if parent == nil {
		return Demand{}, nil, errors.New("splitter: parent is nil")
	}
	d := Demand{Moves: Quarter(parent)}
	shares := make([]Share, 0, len(clusters))
	for _, c := range clusters {
		weight, _ := c.Weight()
		shares = append(shares, Restrict(Share{Name: c.Name, Weight: weight, Capacity: c.Pods}, c))
	}
	return d, shares, nil
}

// Quarter returns a budget of moves that suits most workloads: a quarter of the parent's
// replicas, and at least one.
func Quarter(parent *unstructured.Unstructured) int64 {
	return max(1, numberOr(parent, 1, "spec", "replicas")/4)
}

// Weight returns the value of the cluster's WeightLabel, nil if the cluster has no such label. It
// fails if the label is not a whole number below 2^31; then the weight is nil too.
func (c Cluster) Weight() (*int64, error) {
	label := c.Labels[v1alpha1.WeightLabel]
	if label == "" {
		return nil, nil
	}
	weight, err := strconv.ParseUint(label, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: label %s is %q, not a whole number below 2^31", c.Name, v1alpha1.WeightLabel, label)
	}
	return new(int64(weight)), nil
}

// Restrict returns the claim restricted by the State of its cluster: a Holding cluster gets no new
// replicas, and a Draining one loses all.
func Restrict(s Share, c Cluster) Share {
	switch c.State {
	case Holding:
		s.Weight, s.Min, s.Hold = new(int64(0)), 0, true
	case Draining:
		s.Max, s.Min = new(int64(0)), 0
	}
	return s
}
