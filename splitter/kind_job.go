// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Jobs returns the Kind of batch/v1 Jobs. Parallelism is divided, and completions in proportion
// to it. A shard's completions are immutable, so they stay in their cluster. Those of a lost
// cluster are repeated elsewhere, unless the Job has ended: then nothing of it changes. A Job
// with indices is not divided: one cluster has all of it.
func Jobs() Kind { return jobs{} }

type jobs struct{}

func (jobs) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

func (jobs) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	if ended(parent) {
		return lasting(parent, have)
	}
	completions, counted := number(parent, "spec", "completions")
	d.Replicas = numberOr(parent, 1, "spec", "parallelism")
	if mode, _, _ := unstructured.NestedString(parent.Object, "spec", "completionMode"); mode == "Indexed" {
		return whole(parent, d, shares, have)
	}
	if suspended, _, _ := unstructured.NestedBool(parent.Object, "spec", "suspend"); d.Replicas == 0 || suspended && len(have) == 0 {
		// Nothing may run yet, so do not fix the clusters either.
		d.Replicas = 0
	}
	d.Moves = 0
	present, done, held := map[string]int64{}, map[string]int64{}, int64(0)
	for _, s := range have {
		if s.Object == nil || s.Object.GetDeletionTimestamp() != nil {
			continue
		}
		present[s.Cluster] = max(0, numberOr(s.Object, 1, "spec", "parallelism"))
		done[s.Cluster] = numberOr(s.Object, 0, "spec", "completions")
	}
	fixed := len(present) > 0 && counted
	chosen := map[string]bool{}
	for _, s := range clusters(shares) {
		// A cluster without room keeps its completions: finished work is not repeated.
		if _, ok := done[s.Name]; ok && (s.Max == nil || *s.Max > 0) {
			held += done[s.Name]
			chosen[s.Name] = true
		}
	}
	shares = with(shares, present)
	if fixed && held >= completions {
		// All completions are given out: only clusters that have some take part.
		shares = only(shares, func(s Share) bool { return chosen[s.Name] })
	}
	plan, err := Divide(d, shares)
	if err != nil {
		return Plan{}, nil, err
	}
	parts := map[string]int64{}
	if counted {
		var claims []Share
		for _, a := range plan.Shards {
			if n := a.Replicas; n > 0 && !chosen[a.Cluster] {
				claims = append(claims, Share{Name: a.Cluster, Weight: &n})
			}
		}
		rest, err := Divide(Demand{Replicas: max(0, completions-held), UID: d.UID}, claims)
		if err != nil {
			return Plan{}, nil, fmt.Errorf("completions: %w", err)
		}
		for _, a := range rest.Shards {
			parts[a.Cluster] = a.Replicas
		}
		plan.Unplaced = max(plan.Unplaced, rest.Unplaced)
	}
	var shards []Shard
	for _, a := range plan.Shards {
		n, part := a.Replicas, parts[a.Cluster]
		if chosen[a.Cluster] {
			part = done[a.Cluster]
		} else if n == 0 || counted && part == 0 {
			continue
		}
		s := generated(cutting(parent, a.Cluster))
		if err := unstructured.SetNestedField(s.Object.Object, n, "spec", "parallelism"); err != nil {
			return Plan{}, nil, fmt.Errorf("spec.parallelism: %w", err)
		}
		if counted {
			if err := unstructured.SetNestedField(s.Object.Object, part, "spec", "completions"); err != nil {
				return Plan{}, nil, fmt.Errorf("spec.completions: %w", err)
			}
		}
		shards = append(shards, s)
	}
	return plan, shards, nil
}

// ended reports whether a Job is Complete or Failed. That is final: an API server does not accept
// a change of it.
func ended(job *unstructured.Unstructured) bool {
	return find(job, "Complete")["status"] == "True" || find(job, "Failed")["status"] == "True"
}

// lasting leaves the shards of an ended Job as they are.
func lasting(parent *unstructured.Unstructured, have []Shard) (Plan, []Shard, error) {
	var plan Plan
	var shards []Shard
	for _, h := range have {
		if h.Object == nil {
			continue
		}
		s := generated(cutting(parent, h.Cluster))
		for _, field := range []string{"parallelism", "completions"} {
			n, ok := number(h.Object, "spec", field)
			if !ok {
				continue
			}
			if err := unstructured.SetNestedField(s.Object.Object, n, "spec", field); err != nil {
				return Plan{}, nil, fmt.Errorf("spec.%s: %w", field, err)
			}
		}
		shards = append(shards, s)
		plan.Shards = append(plan.Shards, Assignment{Cluster: h.Cluster, Replicas: numberOr(h.Object, 1, "spec", "parallelism")})
	}
	plan.sort()
	return plan, shards, nil
}

// verdict returns the status of an ended Job as it was written.
func verdict(parent *unstructured.Unstructured) map[string]any {
	status := map[string]any{}
	for _, field := range []string{"active", "ready", "succeeded", "failed", "terminating"} {
		if n := numberOr(parent, 0, "status", field); n != 0 {
			status[field] = n
		}
	}
	for _, field := range []string{"startTime", "completionTime"} {
		if at := text(parent, field); at != "" {
			status[field] = at
		}
	}
	var conditions []any
	for _, kind := range []string{"SuccessCriteriaMet", "Complete", "FailureTarget", "Failed"} {
		if c := find(parent, kind); c["status"] == "True" {
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			conditions = append(conditions, condition(kind, true, reason, "", message))
		}
	}
	status["conditions"] = conditions
	return status
}

// generated removes the fields that each API server generates for a Job: a selector by the Job's
// UID, and its labels.
func generated(s Shard) Shard {
	if manual, _, _ := unstructured.NestedBool(s.Object.Object, "spec", "manualSelector"); manual {
		return s
	}
	unstructured.RemoveNestedField(s.Object.Object, "spec", "selector")
	for _, label := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata", "labels", label)
	}
	if labels, ok, _ := unstructured.NestedMap(s.Object.Object, "spec", "template", "metadata", "labels"); ok && len(labels) == 0 {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata", "labels")
	}
	if meta, ok, _ := unstructured.NestedMap(s.Object.Object, "spec", "template", "metadata"); ok && len(meta) == 0 {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata")
	}
	return s
}

// clusters returns the leaves of shares.
func clusters(shares []Share) (leaves []Share) {
	for _, s := range shares {
		if s.Group {
			leaves = append(leaves, clusters(s.Members)...)
		} else {
			leaves = append(leaves, s)
		}
	}
	return leaves
}

// only keeps the clusters for which in is true.
func only(shares []Share, in func(Share) bool) (left []Share) {
	for _, s := range shares {
		switch {
		case s.Group:
			s.Members = only(s.Members, in)
			left = append(left, s)
		case in(s):
			left = append(left, s)
		}
	}
	return left
}

// whole gives the undivided parent to one cluster, and keeps it there while that cluster may have
// it.
func whole(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	d.Replicas, d.Mode, d.Moves = 1, Fewest, 0
	present := map[string]int64{}
	for _, s := range have {
		if s.Object != nil && s.Object.GetDeletionTimestamp() == nil {
			present[s.Cluster] = 1
		}
	}
	shares = with(shares, present)
	plan, err := Divide(d, shares)
	if err != nil {
		return Plan{}, nil, err
	}
	var shards []Shard
	for _, a := range plan.Shards {
		if a.Replicas > 0 {
			shards = append(shards, generated(cutting(parent, a.Cluster)))
		}
	}
	return plan, shards, nil
}

func (jobs) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	if ended(parent) {
		return verdict(parent), nil
	}
	status := map[string]any{}
	if err := add(status, counters(nil, "active", "ready", "succeeded", "failed", "terminating"), parent, shards); err != nil {
		return nil, err
	}
	// An API server rejects lower numbers: work done in a lost cluster remains done.
	for _, field := range []string{"succeeded", "failed"} {
		now, _ := status[field].(int64)
		if n := max(now, numberOr(parent, 0, "status", field)); n != 0 {
			status[field] = n
		}
	}
	complete, over, placed := len(shards) > 0, len(shards) > 0, int64(0)
	var failures []string
	var started, ended string
	for _, s := range shards {
		first, last := text(s.Object, "startTime"), text(s.Object, "completionTime")
		if first != "" && (started == "" || first < started) {
			started = first
		}
		ended = max(ended, last)
		done, failed := find(s.Object, "Complete")["status"] == "True", find(s.Object, "Failed")
		if failed["status"] == "True" {
			failures = append(failures, fmt.Sprintf("%s: %v", s.Cluster, failed["message"]))
		}
		complete = complete && done
		over = over && (done || failed["status"] == "True")
		placed += numberOr(s.Object, 0, "spec", "completions")
	}
	if completions, counted := number(parent, "spec", "completions"); counted && placed < completions {
		complete, over = false, false
	}
	if suspended, _, _ := unstructured.NestedBool(parent.Object, "spec", "suspend"); !suspended && text(parent, "startTime") != "" {
		started = text(parent, "startTime") // the API server rejects another startTime too
	}
	if started != "" {
		status["startTime"] = started
	}
	var conditions []any
	switch {
	case complete:
		if ended != "" {
			status["completionTime"] = ended
		}
		conditions = []any{condition("SuccessCriteriaMet", true, "CompletionsReached", "", "all clusters are done"),
			condition("Complete", true, "CompletionsReached", "", "all clusters are done")}
	case failures != nil:
		message := brief(failures, "; ")
		conditions = []any{condition("FailureTarget", true, "ClusterFailed", "", message)}
		if over {
			conditions = append(conditions, condition("Failed", true, "ClusterFailed", "", message))
		}
	}
	if !complete && !over {
		conditions = append(conditions, unscheduled(shards)...)
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	return status, nil
}

// text reads a string field of the status.
func text(obj *unstructured.Unstructured, field string) string {
	if obj == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(obj.Object, "status", field)
	return s
}
