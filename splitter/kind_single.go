// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/workload"
)

// CronJobs returns the Kind of batch/v1 CronJobs. One cluster runs the CronJob. If that cluster may
// no longer run it, another cluster takes over.
func CronJobs() Kind { return oneCluster{declaration{workload.BuiltinType("cronjobs")}} }

// oneCluster is the Kind of types whose objects one cluster has.
type oneCluster struct{ declaration }

func (k oneCluster) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	return undivided(parent, d, shares, have)
}

// DaemonSets returns the Kind of apps/v1 DaemonSets: each cluster gets one shard. A cluster whose Max
// is zero gets none. A cluster whose weight is zero keeps its shard, but gets no new one.
func DaemonSets() Kind { return everyCluster{declaration{workload.BuiltinType("daemonsets")}} }

// everyCluster is the Kind of types whose objects each cluster has, with the same spec.
type everyCluster struct{ declaration }

func (k everyCluster) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
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
			shards = append(shards, k.newShard(parent, a.Cluster))
		}
	}
	return plan, shards, nil
}
