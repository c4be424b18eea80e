// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/workload"
)

func (k jobs) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	if ended(parent) {
		return verdict(parent), nil
	}
	status, err := k.fold(parent, shards)
	if err != nil {
		return nil, err
	}
	// An API server rejects lower numbers, so work done in a lost cluster continues to count.
	for _, field := range []string{"succeeded", "failed"} {
		now, _ := status[field].(int64)
		if n := max(now, numberOr(parent, 0, "status", field)); n != 0 {
			status[field] = n
		}
	}
	if indexed(parent) {
		foldIndexes(status, parent, shards)
	}
	all := outcomeOf(parent, shards)
	if all.started != "" {
		status["startTime"] = all.started
	}
	if all.complete && all.ended != "" {
		status["completionTime"] = all.ended
	}
	conditions := all.conditions()
	if all.over {
		delete(status, "conditions") // an ended Job has no pods that wait for a node
	}
	return withCondition(status, append(conditions, indexesDivided(parent, shards)...)...), nil
}

// outcome is the result of a Job in all its clusters together.
type outcome struct {
	started, ended string   // startTime of the first start, and completionTime of the last end
	complete       bool     // in all clusters
	over           bool     // complete or failed in all clusters
	failures       []string // the messages of clusters where the Job failed
}

func outcomeOf(parent *unstructured.Unstructured, shards []Shard) outcome {
	o := outcome{complete: len(shards) > 0, over: len(shards) > 0}
	placed := int64(0)
	var indexes []span
	for _, s := range shards {
		if first := text(s.Object, "startTime"); first != "" && (o.started == "" || first < o.started) {
			o.started = first
		}
		o.ended = max(o.ended, text(s.Object, "completionTime"))
		done, failed := isTrue(s.Object, "Complete"), isTrue(s.Object, "Failed")
		if failed {
			o.failures = append(o.failures, fmt.Sprintf("%s: %v", s.Cluster, workload.Condition(s.Object, "Failed")["message"]))
		}
		o.complete = o.complete && done
		o.over = o.over && (done || failed)
		placed += numberOr(s.Object, 0, "spec", "completions")
		if s.Object != nil {
			indexes = append(indexes, indexesOf(parent, s.Object))
		}
	}
	if completions, counted := number(parent, "spec", "completions"); counted && (placed < completions || indexed(parent) && len(gaps(completions, indexes)) > 0) {
		o.complete, o.over = false, false
	}
	if suspended, _, _ := unstructured.NestedBool(parent.Object, "spec", "suspend"); !suspended && text(parent, "startTime") != "" {
		o.started = text(parent, "startTime") // the API server rejects another startTime
	}
	return o
}

func (o outcome) conditions() []any {
	if o.complete {
		return []any{condition("SuccessCriteriaMet", true, "CompletionsReached", "", "all clusters are done"),
			condition("Complete", true, "CompletionsReached", "", "all clusters are done")}
	}
	if o.failures == nil {
		return nil
	}
	message := loop.Brief(o.failures, "; ")
	conditions := []any{condition("FailureTarget", true, "ClusterFailed", "", message)}
	if o.over {
		conditions = append(conditions, condition("Failed", true, "ClusterFailed", "", message))
	}
	return conditions
}

// verdict returns the status of an ended Job with the values that it already has.
func verdict(parent *unstructured.Unstructured) map[string]any {
	status := map[string]any{}
	for _, field := range []string{"active", "ready", "succeeded", "failed", "terminating"} {
		if n := numberOr(parent, 0, "status", field); n != 0 {
			status[field] = n
		}
	}
	for _, field := range []string{"startTime", "completionTime", "completedIndexes", "failedIndexes"} {
		if at := text(parent, field); at != "" {
			status[field] = at
		}
	}
	var conditions []any
	for _, kind := range []string{"SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"} {
		if isTrue(parent, kind) {
			c := workload.Condition(parent, kind)
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			conditions = append(conditions, condition(kind, true, reason, "", message))
		}
	}
	status["conditions"] = conditions
	return status
}

// text reads a string field of the status.
func text(obj *unstructured.Unstructured, field string) string {
	if obj == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(obj.Object, "status", field)
	return s
}
