// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import "fmt"

// ConditionDuplicated is the type of the condition in the status of Deployments, StatefulSets and Jobs that is True while
// replicas may run twice (reason ClusterLost): a cluster did not answer for longer than Options.Grace, its replicas were
// placed elsewhere, and it has not removed its own yet. The message has their number, as the cluster last reported it, and
// names the clusters. The counters of the status do not contain them. Otherwise there is no such condition.
const ConditionDuplicated = "Duplicated"

// duplicated is the condition about shards that are to be removed by clusters that were lost; nil: there are none.
func duplicated(lost []Shard) []any {
	var total int64
	var all []string
	for _, s := range lost {
		if n := lastReplicas(s); n > 0 {
			total += n
			all = append(all, fmt.Sprintf("%s had %d when it last answered", s.Cluster, n))
		}
	}
	if all == nil {
		return nil
	}
	what := fmt.Sprintf("%d replicas may run twice", total)
	if total == 1 {
		what = "1 replica may run twice"
	}
	return []any{condition(ConditionDuplicated, true, "ClusterLost", "", what+", as they were placed elsewhere and are not removed yet: "+brief(all, ", "))}
}

// lastReplicas is how many pods a shard last had, or was to have if nothing was reported.
func lastReplicas(s Shard) int64 {
	for _, field := range []string{"replicas", "active", "currentNumberScheduled"} {
		if n, ok := number(s.Object, "status", field); ok {
			return n
		}
	}
	return numberOr(s.Object, numberOr(s.Object, 0, "spec", "parallelism"), "spec", "replicas")
}

// hasConditions reports whether a kind has replicas that are placed elsewhere when a cluster is lost, and conditions of any
// type in its status.
func hasConditions(kind Kind) bool {
	switch kind.(type) {
	case deployments, statefulSets, jobs:
		return true
	}
	return false
}
