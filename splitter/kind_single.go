// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CronJobs returns the Kind of batch/v1 CronJobs. One cluster runs the CronJob. If that cluster may
// no longer run it, another cluster takes over.
func CronJobs() Kind { return cronJobs{} }

type cronJobs struct{}

func (cronJobs) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
}

func (cronJobs) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	return undivided(parent, d, shares, have)
}

func (cronJobs) Fold(_ *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status := map[string]any{}
	var active []any
	for _, s := range shards {
		if s.Object == nil {
			continue
		}
		jobs, _, _ := unstructured.NestedSlice(s.Object.Object, "status", "active")
		active = append(active, jobs...)
		for _, field := range []string{"lastScheduleTime", "lastSuccessfulTime"} {
			before, _ := status[field].(string)
			if last := max(before, text(s.Object, field)); last != "" {
				status[field] = last
			}
		}
	}
	if active != nil {
		status["active"] = active
	}
	return status, nil
}

// DaemonSets returns the Kind of apps/v1 DaemonSets: each cluster gets one shard. A cluster whose Max
// is zero gets none. A cluster whose weight is zero keeps its shard, but gets no new one.
func DaemonSets() Kind { return daemonSets{} }

type daemonSets struct{}

func (daemonSets) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
}

func (daemonSets) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	d.Replicas, d.Mode = 1, Duplicate
	there := byCluster(have)
	leaves := clusters(shares)
	for i, s := range leaves {
		leaves[i] = Share{Name: s.Name, Weight: s.Weight, Max: s.Max}
		if _, ok := there[s.Name]; ok && s.Weight != nil && *s.Weight == 0 {
			leaves[i].Weight = nil // a shard stays in a cluster of weight zero
		}
	}
	plan, err := Divide(d, leaves)
	if err != nil {
		return Plan{}, nil, err
	}
	var shards []Shard
	for _, a := range plan.Shards {
		if a.Replicas > 0 {
			shards = append(shards, newShard(parent, a.Cluster))
		}
	}
	return plan, shards, nil
}

func (daemonSets) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status := map[string]any{}
	observe(status, parent, shards)
	if conditions := unscheduled(shards); conditions != nil {
		status["conditions"] = conditions
	}
	return status, add(status, counters(
		[]string{"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"},
		"updatedNumberScheduled", "numberAvailable", "numberUnavailable"), parent, shards)
}
