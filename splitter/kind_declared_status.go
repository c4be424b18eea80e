// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// Fold computes the declared status of a parent.
func (k declaration) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status, err := k.fold(parent, shards)
	if err != nil || !k.t.Adds(v1alpha1.AddAvailable) {
		return status, err
	}
	var behind []string
	for _, s := range shards {
		if healthy, _ := k.t.Healthy(s.Object); !healthy {
			behind = append(behind, s.Cluster)
		}
	}
	message := fmt.Sprintf("%d of %d clusters are healthy", len(shards)-len(behind), len(shards))
	if behind != nil {
		message += "; not " + loop.Brief(behind, ", ")
	}
	return withCondition(status, condition("Available", len(shards) > 0 && behind == nil, "AllClustersHealthy", "ClustersUnhealthy", message)), nil
}

// fold computes the declared fields and conditions of a parent's status, without the condition Available.
func (k declaration) fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status := map[string]any{}
	if err := k.foldGeneration(status, parent, shards); err != nil {
		return nil, err
	}
	for _, f := range k.t.Fields() {
		if f.Fold == v1alpha1.FoldSum {
			if err := add(status, []counter{{f.Path, f.Always}}, parent, shards); err != nil {
				return nil, err
			}
			continue
		}
		if v, ok := foldField(f, shards); ok {
			if err := unstructured.SetNestedField(status, v, f.Path[1:]...); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range k.t.Spec().Status.Conditions {
		if folded := k.foldCondition(c, shards); folded != nil {
			status = withCondition(status, folded)
		}
	}
	if k.t.Adds(v1alpha1.AddScheduled) {
		status = withCondition(status, unscheduled(shards)...)
	}
	return status, nil
}

// withCondition adds conditions to a status.
func withCondition(status map[string]any, more ...any) map[string]any {
	if more != nil {
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(slices.Clone(more), conditions...)
	}
	return status
}

// foldGeneration sets the observed generation, as observe does.
func (k declaration) foldGeneration(status map[string]any, parent *unstructured.Unstructured, shards []Shard) error {
	path := k.t.ObservedGeneration()
	if path == nil {
		return nil
	}
	observed, ok := generationAt(parent, path)
	if observed > parent.GetGeneration() {
		observed = max(0, parent.GetGeneration()-1) // another controller wrote it
	}
	if !slices.ContainsFunc(shards, func(s Shard) bool { return !k.observed(s) }) && parent.GetGeneration() > 0 {
		observed, ok = parent.GetGeneration(), true
	}
	if !ok {
		return nil
	}
	var v any = observed
	if k.t.Spec().Status.ObservedGeneration.Type == v1alpha1.GenerationString {
		v = strconv.FormatInt(observed, 10)
	}
	return unstructured.SetNestedField(status, v, path[1:]...)
}

// observed reports whether the shard's cluster has observed the desired spec. If the type does not report that, every
// spec counts as observed once it is written.
func (k declaration) observed(s Shard) bool {
	if !s.Current || !s.exists() {
		return false
	}
	path := k.t.ObservedGeneration()
	if path == nil {
		return true
	}
	seen, ok := generationAt(s.Object, path)
	return ok && seen >= s.Object.GetGeneration()
}

// generationAt reads a generation: a number, or a text with a number.
func generationAt(obj *unstructured.Unstructured, path []string) (int64, bool) {
	if n, ok := number(obj, path...); ok || obj == nil {
		return n, ok
	}
	text, _, _ := unstructured.NestedString(obj.Object, path...)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// mostJoined is the maximum length of a joined list.
const mostJoined = 256

// foldField computes a field of the parent from the same field of the shards. It returns false if the field is absent.
func foldField(f workload.Field, shards []Shard) (any, bool) {
	var values []any
	for _, s := range shards {
		if s.Object == nil {
			continue
		}
		if v, ok, err := unstructured.NestedFieldCopy(s.Object.Object, f.Path...); ok && err == nil && v != nil {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil, false
	}
	all := len(values) == len(shards)
	switch f.Fold {
	case v1alpha1.FoldSame:
		return values[0], all && !slices.ContainsFunc(values, func(v any) bool { return !reflect.DeepEqual(v, values[0]) })
	case v1alpha1.FoldLatest:
		return latest(values)
	case v1alpha1.FoldJoin:
		var joined []any
		for _, v := range values {
			list, _ := v.([]any)
			joined = append(joined, list...)
		}
		return joined[:min(len(joined), mostJoined)], len(joined) > 0
	case v1alpha1.FoldWorst:
		v, rank := worst(values, f.Order)
		return v, rank < len(f.Order) && (all || rank == 0)
	}
	return nil, false
}

// latest returns the latest of the values that are times in RFC 3339.
func latest(values []any) (text any, ok bool) {
	var last time.Time
	for _, v := range values {
		s, _ := v.(string)
		if at, err := time.Parse(time.RFC3339, s); err == nil && (!ok || at.After(last)) {
			text, last, ok = s, at, true
		}
	}
	return text, ok
}

// worst returns the text that comes first in the order, and its place. A text that is not in the order has the place -1.
// If no value is a text, the place is the length of the order.
func worst(values []any, order []string) (text any, place int) {
	place = len(order)
	for _, v := range values {
		if s, ok := v.(string); ok {
			if i := slices.Index(order, s); i < place {
				text, place = s, i
			}
		}
	}
	return text, place
}

// foldCondition computes a condition of the parent from those of the shards; nil if no shard has it.
func (k declaration) foldCondition(c v1alpha1.FoldedCondition, shards []Shard) map[string]any {
	decisive := "False" // the status that decides alone
	if c.Fold == v1alpha1.FoldAny {
		decisive = "True"
	}
	have, unknown := 0, 0
	reasons := map[bool]string{} // the first reason, by whether it is of the decisive status
	var messages []string
	for _, s := range shards {
		one := workload.Condition(s.Object, c.Type)
		status, _ := one["status"].(string)
		reason, _ := one["reason"].(string)
		decides := status == decisive
		switch {
		case one == nil:
			unknown++
			continue
		case decides:
			message, _ := one["message"].(string)
			messages = append(messages, s.Cluster+": "+message)
		case status != "True" && status != "False", c.Fold == v1alpha1.FoldAll && !k.observed(s):
			unknown++
		}
		have++
		if reasons[decides] == "" {
			reasons[decides] = reason
		}
	}
	folded := map[string]any{"type": c.Type, "status": decisive, "reason": reasons[true], "message": loop.Shorten(loop.Brief(messages, "; "), loop.LongestMessage)}
	switch {
	case have == 0:
		return nil
	case messages != nil:
	case unknown > 0 && c.Fold == v1alpha1.FoldAll:
		folded["status"], folded["reason"] = "Unknown", "ClustersPending"
		folded["message"] = fmt.Sprintf("%d of %d clusters have not reported it for the present spec", unknown, len(shards))
	default:
		folded["status"], folded["reason"] = opposite(decisive), reasons[false]
		folded["message"] = fmt.Sprintf("in all %d clusters", len(shards))
	}
	if folded["reason"] == "" {
		folded["reason"] = "Combined" // most schemas require a reason
	}
	return folded
}

func opposite(status string) string {
	if status == "True" {
		return "False"
	}
	return "True"
}
