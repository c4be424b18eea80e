// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/workload"
)

func (a autoscalers) Fold(autoscaler *unstructured.Unstructured, parts []Shard) (map[string]any, error) {
	status := map[string]any{}
	if err := add(status, counters([]string{"desiredReplicas"}, "currentReplicas"), autoscaler, parts); err != nil {
		return nil, err
	}
	a.observe(status, autoscaler, parts)
	if last := lastScaled(parts); last != "" {
		status["lastScaleTime"] = last
	}
	if metrics := foldMetrics(parts); metrics != nil {
		status["currentMetrics"] = metrics
	}
	status["conditions"] = scalingConditions(parts)
	return status, nil
}

// observe sets observedGeneration. Controllers of autoscalers do not report the generation that they have observed, so a
// part counts as observed if its report agrees with its bounds.
func (a autoscalers) observe(status map[string]any, autoscaler *unstructured.Unstructured, parts []Shard) {
	all := a.scaling(autoscaler, followed{}, parts).clusters
	late := slices.ContainsFunc(parts, func(p Shard) bool { return !p.Current || !all[p.Cluster].settled })
	if !late && autoscaler.GetGeneration() > 0 {
		status["observedGeneration"] = autoscaler.GetGeneration()
	} else if before, ok := number(autoscaler, "status", "observedGeneration"); ok {
		status["observedGeneration"] = min(before, max(0, autoscaler.GetGeneration()-1))
	}
}

// lastScaled returns the latest lastScaleTime of the parts; empty if none has one.
func lastScaled(parts []Shard) (last string) {
	for _, p := range parts {
		if p.Object != nil {
			at, _, _ := unstructured.NestedString(p.Object.Object, "status", "lastScaleTime")
			last = max(last, at) // texts in RFC 3339 and UTC sort by time
		}
	}
	return last
}

// scalingConditions returns the conditions of an autoscaler. AbleToScale and ScalingActive are False if they are False in
// a cluster. ScalingLimited is True if a cluster wants more replicas than the maxReplicas of its part, or fewer than its
// minReplicas.
func scalingConditions(parts []Shard) []any {
	if len(parts) == 0 {
		return []any{condition("ScalingActive", false, "", "ScalingDisabled", "the workload has no replicas, or no cluster may have any")}
	}
	var conditions []any
	for _, kind := range []struct{ name, reason string }{{"AbleToScale", "ReadyForNewScale"}, {"ScalingActive", "ValidMetricFound"}} {
		var failing []string
		reason := ""
		for _, p := range parts {
			if c := workload.Condition(p.Object, kind.name); c["status"] == "False" {
				failing = append(failing, fmt.Sprintf("%s: %v", p.Cluster, c["message"]))
				reason, _ = c["reason"].(string)
			}
		}
		message := "all clusters"
		if failing != nil {
			message = loop.Brief(failing, "; ")
		}
		conditions = append(conditions, condition(kind.name, failing == nil, kind.reason, reason, message))
	}
	var limited []string
	reason := ""
	for _, p := range parts {
		if c := workload.Condition(p.Object, "ScalingLimited"); c["status"] == "True" {
			limited = append(limited, fmt.Sprintf("%s: %v", p.Cluster, c["message"]))
			reason, _ = c["reason"].(string)
		}
	}
	message := "no cluster is limited"
	if limited != nil {
		message = loop.Brief(limited, "; ")
	}
	return append(conditions, condition("ScalingLimited", limited != nil, reason, "DesiredWithinRange", message))
}

// foldMetrics combines the metrics that the clusters report: values are added, and averages are weighted by replicas.
// A metric that not all clusters report is combined from those that do.
func foldMetrics(parts []Shard) (all []any) {
	folded := map[string]*metricSum{}
	for _, p := range parts {
		if p.Object == nil {
			continue
		}
		list, _, _ := unstructured.NestedSlice(p.Object.Object, "status", "currentMetrics")
		for _, m := range list {
			metric, _ := m.(map[string]any)
			current, id := currentOf(metric)
			if current == nil {
				continue
			}
			sum := folded[id]
			if sum == nil {
				sum = &metricSum{metric: metric, current: current}
				folded[id] = sum
				all = append(all, metric)
			}
			sum.add(current, max(1, count(p.Object, 0, "status", "currentReplicas")))
		}
	}
	for _, sum := range folded {
		sum.set()
	}
	return all
}

// currentOf returns the measured numbers of a metric, and a text that identifies the metric in all clusters.
func currentOf(metric map[string]any) (current map[string]any, id string) {
	for source, v := range metric {
		of, ok := v.(map[string]any)
		if !ok {
			continue
		}
		if current, ok = of["current"].(map[string]any); ok {
			rest := map[string]any{}
			for field, value := range of {
				if field != "current" {
					rest[field] = value
				}
			}
			data, _ := json.Marshal(rest) // cannot fail: it was decoded from JSON
			return current, source + string(data)
		}
	}
	return nil, ""
}

// metricSum is the sum of one metric over clusters, in thousandths.
type metricSum struct {
	metric, current map[string]any
	value           *big.Int
	average         *big.Int
	utilization     int64
	weight          map[string]int64 // replicas that reported a field
	format          resource.Format
}

func (s *metricSum) add(current map[string]any, replicas int64) {
	if s.weight == nil {
		s.weight, s.value, s.average = map[string]int64{}, new(big.Int), new(big.Int)
	}
	for field, sum := range map[string]*big.Int{"value": s.value, "averageValue": s.average} {
		v, ok := current[field]
		if !ok {
			continue
		}
		q, err := resource.ParseQuantity(fmt.Sprint(v))
		if err != nil {
			continue
		}
		factor := int64(1)
		if field == "averageValue" {
			factor = replicas
		}
		s.format = q.Format
		s.weight[field] += replicas
		sum.Add(sum, new(big.Int).Mul(big.NewInt(q.MilliValue()), big.NewInt(factor)))
	}
	if n, ok := current["averageUtilization"].(int64); ok {
		s.weight["averageUtilization"] += replicas
		s.utilization += min(max(0, n), math.MaxInt32) * replicas
	}
}

// set writes the combined numbers into the metric.
func (s *metricSum) set() {
	if s.weight["value"] > 0 {
		s.current["value"] = resource.NewMilliQuantity(s.value.Int64(), s.format).String()
	}
	if n := s.weight["averageValue"]; n > 0 {
		s.current["averageValue"] = resource.NewMilliQuantity(s.average.Div(s.average, big.NewInt(n)).Int64(), s.format).String()
	}
	if n := s.weight["averageUtilization"]; n > 0 {
		s.current["averageUtilization"] = s.utilization / n
	}
}
