// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"

	"github.com/atoll-dev/atoll/splitter/rollout"
)

// Three clusters have the old template of a workload of ten replicas, of which two may be unavailable.
// One replica is unavailable already. So one cluster begins, the others wait.
func ExamplePlan() {
	budget := rollout.Budget{Replicas: 10, MaxUnavailable: 2}
	steps, err := rollout.Plan(budget, rollout.Options{Order: []string{"canary"}}, []rollout.Cluster{
		{Name: "canary", Want: 2, Spec: 2, Pods: 2, Available: 2, Outdated: true},
		{Name: "east", Want: 4, Spec: 4, Pods: 4, Available: 4, Outdated: true},
		{Name: "west", Want: 4, Spec: 4, Pods: 4, Available: 3},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range steps {
		fmt.Printf("%s: %d replicas, rolls %t, at most %d unavailable\n", step.Name, step.Replicas, step.Roll, step.Unavailable)
	}
	// Output:
	// canary: 2 replicas, rolls true, at most 1 unavailable
	// east: 4 replicas, rolls false, at most 0 unavailable
	// west: 4 replicas, rolls false, at most 0 unavailable
}
