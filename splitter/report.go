// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// ConditionPlaced is the type of a condition in the status of Deployments, StatefulSets and kinds
// whose [Conditions] permit it. It is True if all replicas are placed. It is False for one of these
// reasons, and the message names the clusters and limits:
//
//   - NameTaken: an object that is not a shard has a shard's name.
//   - Unplaced: bounds or missing clusters leave some replicas unplaced.
//   - VolumesHeld: replicas cannot leave a cluster without their volumes.
//   - SameOrdinals: a StatefulSet asks for unique ordinals, and pods may have the same ones.
const ConditionPlaced = "Placed"

// reported is the state that a parent's status describes.
type reported struct {
	plan   Plan
	limits map[string]limit // by the room in the clusters
	parts  []Shard
	lost   []Shard  // the shards that lost clusters have not removed yet
	taken  []string // the names of shards that objects of other clients have
}

// report writes the parent's status, computed from that of its shards.
func (s *Splitter) report(ctx context.Context, k *kindState, parent *unstructured.Unstructured, now reported) error {
	status, err := k.kind.Fold(parent, now.parts)
	if err != nil {
		return fmt.Errorf("splitter: fold %s: %w", loop.KeyOf(parent), err)
	}
	permitted := conditionsOf(k.kind)
	if permitted.Placed {
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(conditions, placed(now))
	}
	if more := duplicated(k.kind, now.lost); more != nil && permitted.Duplicated {
		conditions, _ := status["conditions"].([]any)
		status["conditions"] = append(conditions, more...)
	}
	stamp(parent, status, permitted, time.Now())
	if len(status) == 0 && workload.Condition(parent, ConditionScheduled) == nil && workload.Condition(parent, ConditionDuplicated) == nil {
		return nil
	}
	desired := loop.Identity(parent)
	desired.Object["status"] = status
	if _, err = k.apply(ctx, loop.KeyOf(parent), parent, desired, "status"); err != nil {
		return err
	}
	for _, e := range changes(parent, status) {
		s.opts.Observer.reported(ctx, e)
	}
	return nil
}

// changes returns an event for each condition in status whose status or reason differs from the one in the parent.
func changes(parent *unstructured.Unstructured, status map[string]any) []ReportedEvent {
	var events []ReportedEvent
	conditions, _ := status["conditions"].([]any)
	for _, v := range conditions {
		c, _ := v.(map[string]any)
		e := ReportedEvent{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Parent: loop.KeyOf(parent), UID: parent.GetUID(), Condition: typeOf(v)}
		e.Status, _ = c["status"].(string)
		e.Reason, _ = c["reason"].(string)
		e.Message, _ = c["message"].(string)
		before := workload.Condition(parent, e.Condition)
		e.Before, _ = before["status"].(string)
		if reason, _ := before["reason"].(string); e.Before != e.Status || reason != e.Reason {
			events = append(events, e)
		}
	}
	return events
}

func placed(now reported) map[string]any {
	plan := now.plan
	if now.taken != nil {
		return condition(ConditionPlaced, false, "", "NameTaken", "other clients' objects have these names: "+loop.Brief(now.taken, ", "))
	}
	if plan.Unplaced == 0 && plan.Held != nil {
		return condition(ConditionPlaced, false, "", "VolumesHeld", holds(plan.Held))
	}
	if plan.Unplaced == 0 && plan.SameOrdinals != nil {
		return condition(ConditionPlaced, false, "", "SameOrdinals", sharesOrdinals(plan.SameOrdinals))
	}
	if plan.Unplaced == 0 {
		return condition(ConditionPlaced, true, "Placed", "", "all replicas have a place")
	}
	var limits []string
	for _, r := range plan.Reasons {
		text := fmt.Sprintf("%s %s", r.Name, r.Limit)
		if l := now.limits[r.Name]; r.Limit == LimitCapacity && l.scarce != "" {
			text += fmt.Sprintf(" (%s)", l.scarce)
		}
		limits = append(limits, text)
	}
	message := fmt.Sprintf("%d replicas find no place", plan.Unplaced)
	if len(plan.Shards) == 0 {
		message += ": no cluster may have any"
	} else if limits != nil {
		message += ": " + loop.Brief(limits, ", ")
	}
	return condition(ConditionPlaced, false, "", "Unplaced", message)
}

// stamp sets the times of the conditions in status. A condition that did not change keeps its
// times.
func stamp(parent *unstructured.Unstructured, status map[string]any, form Conditions, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	for _, v := range conditions {
		c, ok := v.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := c["type"].(string)
		before := workload.Condition(parent, kind)
		set := func(field string, same bool) {
			c[field] = now.UTC().Format(time.RFC3339)
			if at, ok := before[field].(string); ok && same {
				c[field] = at
			}
		}
		set("lastTransitionTime", before["status"] == c["status"])
		if form.UpdateTime {
			set("lastUpdateTime", before["status"] == c["status"] && before["reason"] == c["reason"] && before["message"] == c["message"])
		}
	}
	slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
}

func typeOf(condition any) string {
	c, _ := condition.(map[string]any)
	s, _ := c["type"].(string)
	return s
}
