// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// Deployments returns the Kind of apps/v1 Deployments. The clusters of a Deployment share its
// maxUnavailable and maxSurge: package rollout paces rollouts, scaling and moves within them. While
// a shard is rolled out, its strategy has its part of the two, and a shard that waits for its part
// is paused. With Duplicate, and with the strategy Recreate, each shard has the parent's strategy.
func Deployments() Kind { return deployments{newReplicated(workload.BuiltinType("deployments"))} }

type deployments struct{ replicated }

func (k deployments) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	if rolling(parent) || slices.ContainsFunc(have, func(s Shard) bool { return rolling(s.Object) }) {
		d.Moves = 0 // a rollout uses up maxUnavailable
	}
	plan, want, err := k.divide(parent, d, shares, have)
	if err != nil {
		return Plan{}, nil, err
	}
	var shards []Shard
	if d.Mode == Duplicate || recreates(parent) || alone(want, have, numberOr(parent, 1, k.replicas...)) {
		shards, err = k.unpaced(parent, d.Mode, plan, want, have)
	} else {
		shards, err = k.rollout(parent, d.Rollout, want, have)
	}
	return plan, shards, err
}

// rolling reports whether a rollout of the Deployment is in progress according to its status.
func rolling(obj *unstructured.Unstructured) bool {
	return obj != nil && (numberOr(obj, 0, "status", "observedGeneration") < obj.GetGeneration() ||
		numberOr(obj, 0, "status", "updatedReplicas") < numberOr(obj, 0, "status", "replicas"))
}

func (k deployments) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status, err := k.replicated.Fold(parent, shards)
	if err != nil {
		return nil, err
	}
	wanted := numberOr(parent, 1, k.replicas...)
	works, _ := status["availableReplicas"].(int64)
	unavailable, _ := limits(parent, wanted)
	conditions := []any{condition("Available", works >= wanted-unavailable, "MinimumReplicasAvailable", "MinimumReplicasUnavailable",
		fmt.Sprintf("%d of %d replicas are available%s", works, wanted, k.behind(shards)))}
	conditions = append(conditions, k.progress(wanted, shards))
	var failures []string
	for _, s := range shards {
		if c := workload.Condition(s.Object, "ReplicaFailure"); c["status"] == "True" {
			failures = append(failures, fmt.Sprintf("%s: %v", s.Cluster, c["message"]))
		}
	}
	if failures != nil {
		conditions = append(conditions, condition("ReplicaFailure", true, "FailedCreate", "", loop.Brief(failures, "; ")))
	}
	return withCondition(status, conditions...), nil
}

// behind returns a text that names the unreachable clusters, and the clusters with fewer available
// replicas than desired. It returns an empty text if there are none.
func (k replicated) behind(shards []Shard) string {
	var behind []string
	for _, s := range shards {
		works, wanted := k.available(s.Object), numberOr(s.Object, 1, k.replicas...)
		switch {
		case s.Silent:
			behind = append(behind, fmt.Sprintf("%s is unreachable, %d of %d at its last report", s.Cluster, works, wanted))
		case works < wanted:
			behind = append(behind, fmt.Sprintf("%s %d of %d", s.Cluster, works, wanted))
		}
	}
	if behind == nil {
		return ""
	}
	return ": " + loop.Brief(behind, ", ")
}

// progress returns the condition Progressing. It is False if a shard reports Progressing False, or
// if replicas are desired and there are no shards. It reports a complete rollout only if each shard
// reports a complete rollout of its present spec.
func (k deployments) progress(wanted int64, shards []Shard) map[string]any {
	if len(shards) == 0 && wanted > 0 {
		return condition("Progressing", false, "", "NoClusters", "no cluster has any replicas of it")
	}
	done := true
	var stuck []string
	reason := ""
	for _, s := range shards {
		c := workload.Condition(s.Object, "Progressing")
		if c["status"] == "False" {
			reason, _ = c["reason"].(string)
			stuck = append(stuck, fmt.Sprintf("%s: %v", s.Cluster, c["message"]))
		}
		done = done && s.observed() && c["reason"] == "NewReplicaSetAvailable"
	}
	switch {
	case stuck != nil:
		return condition("Progressing", false, "", reason, loop.Brief(stuck, "; "))
	case done:
		return condition("Progressing", true, "NewReplicaSetAvailable", "", "all clusters have rolled it out")
	}
	return condition("Progressing", true, "ReplicaSetUpdated", "", "clusters are rolling it out")
}

func condition(kind string, is bool, yes, no, message string) map[string]any {
	c := map[string]any{"type": kind, "status": "False", "reason": no, "message": loop.Shorten(message, loop.LongestMessage)}
	if is {
		c["status"], c["reason"] = "True", yes
	}
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == "" })
	return c
}

func isTrue(obj *unstructured.Unstructured, kind string) bool {
	return workload.Condition(obj, kind)["status"] == "True"
}
