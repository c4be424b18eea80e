// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/workload"
)

// Autoscalers returns the Follower of autoscaling/v2 HorizontalPodAutoscalers. An autoscaler of a divided workload gets one
// part per cluster, which scales the workload's shard there by the load there. The Splitter writes the sum of
// the replicas that the parts want into the workload's number of replicas, as the autoscaler of one cluster does.
//
// The parts' minReplicas add up to those of the autoscaler. A part needs at least one of them, so an autoscaler with fewer
// minReplicas than there are clusters uses only as many clusters. The parts' maxReplicas add up to those of the autoscaler.
// At first they are divided by weight. After that, the parts whose clusters need more share half of those that no part
// uses, again after each change. A target of the type Value is divided in proportion to maxReplicas. The other targets are
// averages or utilizations and stay. While replicas move between clusters, the parts may add replicas but remove none.
//
// A person pauses an autoscaler by scaling the workload to zero, as with one cluster. With minReplicas zero, which API
// servers allow with the feature HPAScaleToZero, zero does not pause: one cluster keeps a part, which scales from zero.
//
// In the mode Duplicate the part of each cluster has the numbers of the autoscaler. If several autoscalers target one
// workload, only the oldest has parts. An autoscaler that targets no divided workload stays as it is.
func Autoscalers() Follower { return autoscalers{} }

type autoscalers struct{}

func (autoscalers) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
}

func (autoscalers) follows(autoscaler, workload *unstructured.Unstructured) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	version, err := schema.ParseGroupVersion(target["apiVersion"])
	return err == nil && target["name"] == workload.GetName() &&
		schema.GroupKind{Group: version.Group, Kind: target["kind"]} == workload.GroupVersionKind().GroupKind()
}

func (autoscalers) scaling(autoscaler *unstructured.Unstructured, of followed, parts []Shard) scaling {
	s := scaling{
		present: of.desired, demand: of.demand, shares: of.shares, clusters: map[string]scaledCluster{},
		min: count(autoscaler, 1, "spec", "minReplicas"),
	}
	s.max = max(1, s.min, count(autoscaler, 1, "spec", "maxReplicas"))
	for _, p := range of.parts {
		s.clusters[p.cluster] = scaledCluster{replicas: p.desired, available: p.available, runs: p.runs, floor: p.floor}
	}
	for cluster, n := range of.ending {
		c := s.clusters[cluster]
		c.runs = n
		s.clusters[cluster] = c
	}
	for _, p := range parts {
		if p.Object == nil {
			continue
		}
		c := s.clusters[p.Cluster]
		c.scaled = p.exists()
		c.ending = !c.scaled
		c.min, c.max = count(p.Object, 1, "spec", "minReplicas"), count(p.Object, 1, "spec", "maxReplicas")
		desired, reported := number(p.Object, "status", "desiredReplicas")
		c.desired, c.reported = replicas(desired), reported && (desired > 0 || c.min == 0) // a controller without metrics reports zero at first
		c.settled = c.reported && c.min <= c.desired && c.desired <= c.max
		if seen, ok := number(p.Object, "status", "observedGeneration"); ok {
			c.settled = c.settled && seen >= p.Object.GetGeneration()
		}
		limit := workload.Condition(p.Object, "ScalingLimited")
		c.limited = limit["status"] == "True" && limit["reason"] == "TooManyReplicas"
		s.clusters[p.Cluster] = c
	}
	return s
}

func (a autoscalers) cut(autoscaler *unstructured.Unstructured, at situation, have []Shard) (Plan, []Shard, error) {
	of := at.workloads[0] // the only one: an autoscaler targets one workload
	if !of.placed {
		return Plan{}, nil, fmt.Errorf("splitter: workload %s: %w", of.name, ErrUndecided)
	}
	if of.duplicate {
		return a.duplicated(autoscaler, of)
	}
	s := a.scaling(autoscaler, of, have)
	all, err := s.bounds()
	if err != nil {
		return Plan{}, nil, err
	}
	var sum int64
	for _, b := range all {
		sum += b.max
	}
	plan := Plan{Unplaced: max(0, s.max-sum)}
	var shards []Shard
	for cluster, b := range all {
		plan.Shards = append(plan.Shards, Assignment{Cluster: cluster, Replicas: b.max})
		part := a.part(autoscaler, of, cluster)
		if err := specify(part, "minReplicas", b.min); err != nil {
			return Plan{}, nil, err
		}
		if err := specify(part, "maxReplicas", b.max); err != nil {
			return Plan{}, nil, err
		}
		divideValues(part.Object, b.max, sum)
		shards = append(shards, part)
	}
	plan.sort()
	slices.SortFunc(shards, func(a, b Shard) int { return strings.Compare(a.Cluster, b.Cluster) })
	return plan, shards, nil
}

// duplicated returns the parts of the mode Duplicate: each has the numbers of the autoscaler.
func (a autoscalers) duplicated(autoscaler *unstructured.Unstructured, of followed) (plan Plan, shards []Shard, err error) {
	for _, p := range of.parts {
		plan.Shards = append(plan.Shards, Assignment{Cluster: p.cluster, Replicas: count(autoscaler, 1, "spec", "maxReplicas")})
		shards = append(shards, a.part(autoscaler, of, p.cluster))
	}
	plan.sort()
	return plan, shards, nil
}

// part returns a copy of an autoscaler for the shard of its workload in a cluster.
func (autoscalers) part(autoscaler *unstructured.Unstructured, of followed, cluster string) Shard {
	part := newShard(autoscaler, cluster)
	spec, _ := part.Object.Object["spec"].(map[string]any)
	target, _ := spec["scaleTargetRef"].(map[string]any) // present, since the autoscaler follows a workload
	target["name"] = ShardName(of.name, cluster)
	return part
}

// divideValues multiplies the targets of the type Value by part / sum, rounded up. Such a target is the total of a metric,
// and each cluster has its own total.
func divideValues(autoscaler *unstructured.Unstructured, part, sum int64) {
	metrics, _, _ := unstructured.NestedFieldNoCopy(autoscaler.Object, "spec", "metrics")
	list, _ := metrics.([]any)
	for _, m := range list {
		metric, _ := m.(map[string]any)
		for _, source := range []string{"object", "external"} {
			of, _ := metric[source].(map[string]any)
			target, _ := of["target"].(map[string]any)
			if target["type"] != "Value" {
				continue
			}
			total, err := resource.ParseQuantity(fmt.Sprint(target["value"]))
			if err == nil {
				target["value"] = proportion(total, part, sum)
			}
		}
	}
}

// proportion returns total * part / sum, rounded up to a thousandth.
func proportion(total resource.Quantity, part, sum int64) string {
	thousandths := new(big.Int).Mul(big.NewInt(total.MilliValue()), big.NewInt(part))
	divisor := big.NewInt(max(1, sum))
	thousandths.Add(thousandths, new(big.Int).Sub(divisor, big.NewInt(1))).Div(thousandths, divisor)
	return resource.NewMilliQuantity(thousandths.Int64(), total.Format).String()
}
