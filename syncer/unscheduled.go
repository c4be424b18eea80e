// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// maxScheduler bounds the message of a scheduler, in bytes: the condition of a parent workload contains the
// messages of ten clusters.
const maxScheduler = 256

// unschedulable returns the scheduler's message about a pod for which it finds no node; ok is false for any other pod.
// Only the condition PodScheduled counts, since no component but the scheduler works on a pod without a node.
func unschedulable(pod *unstructured.Unstructured) (message string, ok bool) {
	if pod.GetDeletionTimestamp() != nil {
		return "", false
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, v := range conditions {
		if c, _ := v.(map[string]any); c["type"] == "PodScheduled" {
			message, _ = c["message"].(string)
			return loop.Shorten(message, maxScheduler), c["status"] == "False" && c["reason"] == "Unschedulable"
		}
	}
	return "", false
}

// plusUnscheduled adds two counts of one workload. Of the two messages it keeps the one that is shorter without its
// numbers. So the next count of the same pods keeps the same message.
func plusUnscheduled(a, b v1alpha1.Unscheduled) v1alpha1.Unscheduled {
	if x, y := withoutNumbers(a.Message), withoutNumbers(b.Message); a.Pods == 0 || cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(y, x)) < 0 {
		a.Message = b.Message
	}
	a.Pods += b.Pods
	return a
}

// withoutNumbers removes the digits of a message, which change with every node and pod.
func withoutNumbers(message string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, message)
}

// sameCount reports whether text has the counted number of pods, and the same message except for its numbers. It returns
// false for text that cannot be decoded.
func sameCount(text string, counted v1alpha1.Unscheduled) bool {
	var published v1alpha1.Unscheduled
	err := json.Unmarshal([]byte(text), &published)
	return err == nil && published.Pods == counted.Pods && withoutNumbers(published.Message) == withoutNumbers(counted.Message)
}

// unscheduledPods publishes upstream how many pods of each object have no node, see Options.Unscheduled.
type unscheduledPods struct{ *syncedType }

// publish writes the count of o's pods upstream if it is known and differs, and updates the resourceVersion of o.u.
func (p unscheduledPods) publish(ctx context.Context, o observed) error {
	name := v1alpha1.UnscheduledAnnotationPrefix + p.syncer.opts.Target
	next, differs := p.records.unpublished(o.ref, o.u.GetAnnotations()[name])
	if !differs {
		return nil
	}
	var value any // null removes the annotation
	if next != "" {
		value = next
	}
	after, err := p.up.merge(ctx, o.u, p.syncer.upManager, map[string]any{"annotations": map[string]any{name: value}})
	if err != nil {
		return fmt.Errorf("write how many pods have no node: %w", err)
	}
	o.u.SetResourceVersion(after.GetResourceVersion())
	p.records.update(o.ref, func(d *detail) { d.published = next })
	p.wrote(ctx, WriteUnscheduled, o.NamespacedName)
	return nil
}
