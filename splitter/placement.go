// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Placement says which clusters a parent is divided over, in which way and with what claims. The Replicas and UID of the
// Demand and what is Present are filled in later. It is pure, must not block, and must be safe for concurrent use. A cluster
// that it leaves out loses what it has.
type Placement func(parent *unstructured.Unstructured, clusters []Cluster) (Demand, []Share, error)

// Everywhere is the Placement over all clusters that may have replicas, by the weights of their WeightLabel. At most a
// quarter of the replicas move at once, and none while some cluster only holds what it has.
func Everywhere(parent *unstructured.Unstructured, clusters []Cluster) (Demand, []Share, error) {
	d := Demand{Moves: max(1, numberOr(parent, 1, "spec", "replicas")/4)}
	shares := make([]Share, 0, len(clusters))
	for _, c := range clusters {
		s := Share{Name: c.Name}
		if label := c.Labels[v1alpha1.WeightLabel]; label != "" {
			weight, err := strconv.ParseUint(label, 10, 31)
			if err != nil {
				return Demand{}, nil, fmt.Errorf("cluster %s: label %s is %q, not a whole number", c.Name, v1alpha1.WeightLabel, label)
			}
			s.Weight = new(int64(weight))
		}
		shares = append(shares, Restrict(s, c))
		if c.State == Holding {
			d.Moves = 0
		}
	}
	return d, shares, nil
}

// Restrict returns a claim as far as the State of its cluster allows: one that only holds what it has gets nothing more, and
// one that drains gets nothing.
func Restrict(s Share, c Cluster) Share {
	switch c.State {
	case Holding:
		s.Weight, s.Min = new(int64(0)), 0
	case Draining:
		s.Max, s.Min = new(int64(0)), 0
	}
	return s
}
