// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
)

// ConditionDuplicated is the type of a condition in the status of Deployments, StatefulSets, Jobs and kinds whose
// [Conditions] permit it. It is True (reason ClusterLost) while replicas may run twice: a cluster was unreachable
// for longer than Options.Grace, its replicas were placed elsewhere, and it has not removed its own replicas yet.
// The message names the clusters, with the number of replicas in their last reports. The counters of the status do
// not include these replicas. At other times the condition is absent.
const ConditionDuplicated = "Duplicated"

// duplicated returns the condition about the shards that lost clusters have not removed yet. It returns nil if
// these shards have no replicas.
func duplicated(kind divider, lost []Shard) []any {
	var total int64
	var all []string
	for _, s := range lost {
		if n := lastReplicas(kind, s); n > 0 {
			total += n
			all = append(all, fmt.Sprintf("%s had %d at its last report", s.Cluster, n))
		}
	}
	if all == nil {
		return nil
	}
	what := fmt.Sprintf("%d replicas may run twice", total)
	if total == 1 {
		what = "1 replica may run twice"
	}
	return []any{condition(ConditionDuplicated, true, "ClusterLost", "", what+", as they were placed elsewhere and are not removed yet: "+loop.Brief(all, ", "))}
}

// lastReplicas returns how many pods a shard last reported. Without such a report, it returns the shard's desired
// number.
func lastReplicas(kind divider, s Shard) int64 {
	if k, ok := kind.(interface {
		pods(*unstructured.Unstructured) int64
	}); ok {
		return k.pods(s.Object)
	}
	return numberOr(s.Object, numberOr(s.Object, 0, "spec", "replicas"), "status", "replicas")
}
