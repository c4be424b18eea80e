// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"encoding/json"
	"fmt"

	"github.com/atoll-dev/atoll/internal/loop"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// ConditionScheduled is the type of a condition in the status of Deployments, StatefulSets,
// DaemonSets and Jobs. It is False (reason Unschedulable) while the scheduler of some cluster finds
// no node for some pods. The message names the clusters, with the number of pods and the message of
// the scheduler. The condition needs syncers that count such pods: see syncer.Options.Unscheduled.
// Without such syncers, and while all pods have a node, the condition is absent.
const ConditionScheduled = "Scheduled"

// unscheduled returns the condition that names the clusters with pods that have no node. It returns
// no condition if there are no such clusters.
func unscheduled(shards []Shard) []any {
	var all []string
	for _, s := range shards {
		if s.Object == nil {
			continue
		}
		var said syncerv1alpha1.Unscheduled
		_ = json.Unmarshal([]byte(s.Object.GetAnnotations()[syncerv1alpha1.UnscheduledAnnotationPrefix+s.Cluster]), &said) // an unreadable annotation counts as absent
		if said.Pods <= 0 {
			continue
		}
		text := fmt.Sprintf("%s: %d pods find no node", s.Cluster, said.Pods)
		if said.Pods == 1 {
			text = s.Cluster + ": 1 pod finds no node"
		}
		if said.Message != "" {
			text += " (" + said.Message + ")"
		}
		all = append(all, text)
	}
	if all == nil {
		return nil
	}
	return []any{condition(ConditionScheduled, false, "", "Unschedulable", loop.Brief(all, "; "))}
}
