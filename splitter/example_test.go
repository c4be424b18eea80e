// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"log"

	"github.com/atoll-dev/atoll/splitter"
)

// Fifteen replicas over two clusters, in proportion two to three. Then the second is full, and ten more are wanted.
func ExampleDivide() {
	clusters := []splitter.Share{{Name: "cluster-1", Weight: new(int64(2))}, {Name: "cluster-2", Weight: new(int64(3))}}
	plan, err := splitter.Divide(splitter.Demand{Replicas: 15}, clusters)
	if err != nil {
		log.Fatal(err)
	}
	for i, a := range plan.Shards {
		fmt.Println(a.Cluster, a.Replicas)
		clusters[i].Present = a.Replicas
	}

	clusters[1].Capacity = new(int64(10))
	plan, err = splitter.Divide(splitter.Demand{Replicas: 25}, clusters)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Shards, plan.Reasons)
	// Output:
	// cluster-1 6
	// cluster-2 9
	// [{cluster-1 15} {cluster-2 10}] [{cluster-2 Capacity 5}]
}

// Two zones have equal claims, whatever the number of clusters in them.
func ExampleShare() {
	plan, err := splitter.Divide(splitter.Demand{Replicas: 12}, []splitter.Share{
		{Name: "zone-a", Group: true, Members: []splitter.Share{{Name: "a1"}, {Name: "a2"}, {Name: "a3"}}},
		{Name: "zone-b", Group: true, Members: []splitter.Share{{Name: "b1"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Shards)
	// Output: [{a1 2} {a2 2} {a3 2} {b1 6}]
}
