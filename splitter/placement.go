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

// Placement says which clusters a parent is divided over, in which way and with what claims. The Replicas and UID of the
// Demand and what is Present are filled in later. It is pure, must not block, and must be safe for concurrent use. A cluster
// that it leaves out loses what it has. With Duplicate and no shares at all every shard goes, whether anything works
// elsewhere or not. An error that wraps ErrUndecided leaves all as it is until the parent or the clusters change.
type Placement func(parent *unstructured.Unstructured, clusters []Cluster) (Demand, []Share, error)

// ErrUndecided is what the error of a Placement wraps that does not know yet.
var ErrUndecided = errors.New("not placed yet")

// Everywhere is the Placement over all clusters that may have replicas, by the weights of their WeightLabel. One that cannot
// be read counts as absent, and stops no other; see Observer.Cluster. At most a quarter of the replicas move at once, and no
// cluster gets more replicas than it can hold pods; what it has stays when it can hold less.
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

// Quarter is a budget of moves that is right for most: a quarter of the parent's replicas, and one at least.
func Quarter(parent *unstructured.Unstructured) int64 {
	return max(1, numberOr(parent, 1, "spec", "replicas")/4)
}

// Weight is that of the cluster's WeightLabel, nil if it has none. It fails if the label is not a whole number below 2^31;
// the weight is nil then too.
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

// Restrict returns a claim as far as the State of its cluster allows: one that only holds what it has gets nothing more, and
// one that drains gets nothing.
func Restrict(s Share, c Cluster) Share {
	switch c.State {
	case Holding:
		s.Weight, s.Min, s.Hold = new(int64(0)), 0, true
	case Draining:
		s.Max, s.Min = new(int64(0)), 0
	}
	return s
}
