// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"fmt"
	"log"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
)

// inZones is a Placement. A workload with the annotation example.com/zones runs only in clusters of these zones, and
// each cluster has the same weight. A workload without the annotation is not divided yet.
func inZones(parent *unstructured.Unstructured, clusters []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
	list, ok := parent.GetAnnotations()["example.com/zones"]
	if !ok {
		return splitter.Demand{}, nil, fmt.Errorf("annotation example.com/zones is absent: %w", splitter.ErrUndecided)
	}
	zones := strings.Split(list, ",")
	var shares []splitter.Share
	for _, c := range clusters {
		if slices.Contains(zones, c.Labels["topology.kubernetes.io/zone"]) {
			share := splitter.Share{Name: c.Name, Capacity: c.Pods}
			shares = append(shares, splitter.Restrict(share, c)) // a cluster that drains or holds gets nothing new
		}
	}
	return splitter.Demand{Moves: splitter.Quarter(parent)}, shares, nil
}

// The third cluster is in another zone. The second has room for two replicas, and three of its share do not fit.
func Example_placement() {
	clusters := []splitter.Cluster{
		{Name: "eu-1", State: splitter.Placeable, Labels: map[string]string{"topology.kubernetes.io/zone": "a"}},
		{Name: "eu-2", State: splitter.Placeable, Labels: map[string]string{"topology.kubernetes.io/zone": "b"}, Pods: new(int64(2))},
		{Name: "us-1", State: splitter.Placeable, Labels: map[string]string{"topology.kubernetes.io/zone": "c"}},
	}
	web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(9)}}}
	_, _, err := inZones(web, clusters)
	fmt.Println(err)

	web.SetAnnotations(map[string]string{"example.com/zones": "a,b"})
	demand, shares, err := inZones(web, clusters)
	if err != nil {
		log.Panic(err)
	}
	demand.Replicas = 9 // a Splitter sets it from the workload
	plan, err := splitter.Divide(demand, shares)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(plan.Shards, plan.Reasons)
	// Output:
	// annotation example.com/zones is absent: not placed yet
	// [{eu-1 7} {eu-2 2}] [{eu-2 Capacity 3}]
}

// A Splitter calls the Placement for each workload, and again when the clusters change.
var _ = splitter.Options{Place: inZones}
