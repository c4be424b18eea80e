// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// ConditionIndexesDivided is the type of a condition in the status of Jobs that have the DivideIndexesAnnotation of
// splitter/v1alpha1.
//
//   - True: the indexes are divided. The message has the indexes of each cluster.
//   - False: one cluster has all indexes, because the Job has a field that applies to all indexes together (reasons
//     SuccessPolicy and MaxFailedIndexes), because a container sets IndexOffsetVariable itself (VariableTaken), or because
//     the Job was started without the annotation (AlreadyStarted).
//   - False with the reason CompletionsLowered: the indexes are divided, but spec.completions was lowered afterwards, and
//     clusters still have the indexes above it.
const ConditionIndexesDivided = "IndexesDivided"

// IndexOffsetVariable is the environment variable that all containers of a Job with divided indexes have. The index of a
// pod is the sum of this variable and JOB_COMPLETION_INDEX, which begins at zero in each cluster.
const IndexOffsetVariable = "ATOLL_COMPLETION_INDEX_OFFSET"

func indexed(job *unstructured.Unstructured) bool {
	mode, _, _ := unstructured.NestedString(job.Object, "spec", "completionMode")
	return mode == "Indexed"
}

// dividesIndexes reports whether the indexes of a Job are divided. If they are not, reason is the reason of the condition;
// it is empty if the Job does not ask for a division. The decision does not change while the Job has shards.
func dividesIndexes(job *unstructured.Unstructured, have []Shard) (divides bool, reason string) {
	for _, s := range have {
		if _, ok := offsetOf(job, s.Object); ok {
			divides = true
		}
	}
	if job.GetAnnotations()[v1alpha1.DivideIndexesAnnotation] != "true" || !indexed(job) {
		return divides, ""
	}
	_, policy, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "successPolicy")
	_, most := number(job, "spec", "maxFailedIndexes")
	switch {
	case divides:
	case hasOffset(job):
		reason = "VariableTaken"
	case policy:
		reason = "SuccessPolicy"
	case most:
		reason = "MaxFailedIndexes"
	case slices.ContainsFunc(have, func(s Shard) bool { return s.exists() }):
		reason = "AlreadyStarted"
	}
	return divides || reason == "", reason
}

// containersOf calls f with each container in the pod template of a Job.
func containersOf(job *unstructured.Unstructured, f func(container map[string]any)) {
	for _, field := range []string{"containers", "initContainers"} {
		v, _, _ := unstructured.NestedFieldNoCopy(job.Object, "spec", "template", "spec", field)
		list, _ := v.([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok {
				f(container)
			}
		}
	}
}

// offsetVariable returns the value of IndexOffsetVariable in the pod template of a Job. It returns false if no container
// has the variable.
func offsetVariable(job *unstructured.Unstructured) (value string, ok bool) {
	containersOf(job, func(container map[string]any) {
		list, _ := container["env"].([]any)
		for _, item := range list {
			if variable, _ := item.(map[string]any); variable["name"] == IndexOffsetVariable {
				value, _ = variable["value"].(string)
				ok = true
			}
		}
	})
	return value, ok
}

// hasOffset reports whether the author of a Job has set IndexOffsetVariable. Then the indexes are not divided.
func hasOffset(job *unstructured.Unstructured) bool {
	_, ok := offsetVariable(job)
	return ok
}

// offsetOf returns the first index of a shard, from the shard's pod template, which is immutable. It returns false if the
// indexes of the Job are not divided.
func offsetOf(job, shard *unstructured.Unstructured) (offset int64, ok bool) {
	if shard == nil || hasOffset(job) {
		return 0, false
	}
	value, ok := offsetVariable(shard)
	offset, err := strconv.ParseInt(value, 10, 32)
	return max(0, offset), ok && err == nil
}

// setOffset sets IndexOffsetVariable in all containers of a shard.
func setOffset(shard *unstructured.Unstructured, offset int64) {
	containersOf(shard, func(container map[string]any) {
		list, _ := container["env"].([]any)
		container["env"] = append(slices.Clone(list), map[string]any{"name": IndexOffsetVariable, "value": strconv.FormatInt(offset, 10)})
	})
}

// indexesOf returns the indexes of a shard.
func indexesOf(job, shard *unstructured.Unstructured) span {
	offset, _ := offsetOf(job, shard)
	return span{offset, offset + max(0, numberOr(shard, 0, "spec", "completions")) - 1}
}

// busy returns the indexes that no new shard may get: those of the shards that stay, and those of the shards that are
// being removed until their clusters have stopped the pods. The indexes of a lost cluster are repeated elsewhere.
func (c completions) busy(job *unstructured.Unstructured, have []Shard) (taken []span) {
	for _, s := range have {
		if s.Object != nil && (!s.Lost || s.exists() && c.in(s.Cluster)) {
			taken = append(taken, indexesOf(job, s.Object))
		}
	}
	return taken
}

// gaps returns the ranges of the numbers from 0 to total-1 that no span contains.
func gaps(total int64, taken []span) (free []span) {
	taken = slices.Clone(taken)
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	next := int64(0)
	for _, s := range taken {
		if s.first > next {
			free = append(free, span{next, min(s.first, total) - 1})
		}
		next = max(next, s.last+1)
		if next >= total {
			return free
		}
	}
	if next < total {
		free = append(free, span{next, total - 1})
	}
	return free
}

// divideIndexes gives the free indexes to those clusters of the plan that have no shard. Each gets one range, in proportion
// to its replicas. If there are more gaps than such clusters, the largest gaps are filled. The result has the number of
// indexes that each of these clusters gets, and the number of indexes that no cluster gets.
func (c completions) divideIndexes(uid types.UID, plan Plan) (parts Plan, err error) {
	var joining []Assignment
	for _, a := range plan.Shards {
		if a.Replicas > 0 && !c.in(a.Cluster) && !c.ending[a.Cluster] {
			joining = append(joining, a)
		}
	}
	free := gaps(c.total, c.taken)
	slices.SortStableFunc(free, func(a, b span) int { return cmp.Compare(b.size(), a.size()) })
	for _, gap := range free[min(len(free), len(joining)):] {
		parts.Unplaced += gap.size()
	}
	free = free[:min(len(free), len(joining))]
	var claims []Share // one for each gap: Divide decides how many clusters share the gap
	for i, gap := range free {
		claims = append(claims, Share{Name: fmt.Sprintf("%09d", i), Weight: new(gap.size()), Min: 1, Max: new(gap.size())})
	}
	clusters, err := Divide(Demand{Replicas: int64(len(joining)), UID: uid}, claims)
	if err != nil {
		return Plan{}, fmt.Errorf("indexes: %w", err)
	}
	for i, gap := range free {
		n := clusters.Shards[i].Replicas
		var weights []Share
		for _, a := range joining[:n] {
			weights = append(weights, Share{Name: a.Cluster, Weight: new(a.Replicas)})
		}
		joining = joining[n:]
		sizes, err := Divide(Demand{Replicas: gap.size(), UID: uid}, weights)
		if err != nil {
			return Plan{}, fmt.Errorf("indexes: %w", err)
		}
		for _, a := range sizes.Shards {
			c.offsets[a.Cluster] = gap.first
			gap.first += a.Replicas
		}
		parts.Shards = append(parts.Shards, sizes.Shards...)
	}
	parts.sort()
	return parts, nil
}

// indexesDivided returns ConditionIndexesDivided of a Job that asks to divide its indexes, nil for other Jobs.
func indexesDivided(job *unstructured.Unstructured, shards []Shard) []any {
	if job.GetAnnotations()[v1alpha1.DivideIndexesAnnotation] != "true" || !indexed(job) {
		return nil
	}
	divides, reason := dividesIndexes(job, shards)
	if !divides {
		return []any{condition(ConditionIndexesDivided, false, "", reason, "one cluster has all indexes: "+undividedBecause[reason])}
	}
	total := numberOr(job, 0, "spec", "completions")
	lowered := false
	var parts []string
	for _, s := range shards {
		if r := indexesOf(job, s.Object); r.size() > 0 {
			parts = append(parts, fmt.Sprintf("%s %d-%d", s.Cluster, r.first, r.last))
			lowered = lowered || r.last >= total
		}
	}
	message := loop.Brief(parts, ", ")
	if lowered {
		return []any{condition(ConditionIndexesDivided, false, "", "CompletionsLowered",
			fmt.Sprintf("completions were lowered to %d after the indexes were divided, and indexes that a cluster has cannot be removed: %s", total, message))}
	}
	return []any{condition(ConditionIndexesDivided, true, "Divided", "", message)}
}

var undividedBecause = map[string]string{
	"VariableTaken":    "a container sets the variable " + IndexOffsetVariable + " itself",
	"SuccessPolicy":    "spec.successPolicy applies to the indexes of all clusters together",
	"MaxFailedIndexes": "spec.maxFailedIndexes applies to the indexes of all clusters together",
	"AlreadyStarted":   "the Job was started without the annotation " + v1alpha1.DivideIndexesAnnotation,
}
