// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// report writes the status of a central object if it differs. It requeues the object instead if
// the status changes too often.
func (r *Replicator) report(ctx context.Context, object *unstructured.Unstructured, p Presence) error {
	if r.opts.Report == nil {
		return nil
	}
	content, err := r.opts.Report(object, p)
	if err != nil {
		return fmt.Errorf("status of %s %s: %w", r.kind.Kind, loop.KeyText(p.Key), err)
	}
	if statusContains(object.Object["status"], content) {
		return nil
	}
	if wait := r.budget(p.Key).Take(time.Now()); wait > 0 {
		r.queue.AddAfter(loop.KeyText(p.Key), wait)
		return nil
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	apply.SetGroupVersionKind(r.kind.Resource.GroupVersion().WithKind(r.kind.Kind))
	apply.SetNamespace(object.GetNamespace())
	apply.SetName(object.GetName())
	apply.SetResourceVersion(object.GetResourceVersion())       // API servers ignore the UID in writes of a status
	apart := slices.Contains(object.GetFinalizers(), Finalizer) // otherwise activate may own RemovalHeld
	err = applyStatus(ctx, clientFor(r.plane, r.kind, object.GetNamespace()), apply, ReplicatorFieldManager, func(t string) bool {
		return reported(t) || apart && t == ConditionRemovalHeld
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of %s %s in the central plane: %w", r.kind.Kind, loop.KeyText(p.Key), err)
	}
	if err == nil {
		r.reportReady(ctx, object, content)
	}
	return nil
}

// reportReady calls the Observer if the status or reason of Ready has changed.
func (r *Replicator) reportReady(ctx context.Context, object *unstructured.Unstructured, content map[string]any) {
	ready := string(v1alpha1.AccountConditionReady)
	now := meta.FindStatusCondition(statusIn(&unstructured.Unstructured{Object: map[string]any{"status": content}}).Conditions, ready)
	if now == nil {
		return
	}
	e := ReadyEvent{Object: r.object(loop.KeyOf(object), object.GetUID()), Status: now.Status, Reason: now.Reason, Message: now.Message}
	if before := meta.FindStatusCondition(statusIn(object).Conditions, ready); before != nil {
		if before.Status == now.Status && before.Reason == now.Reason {
			return
		}
		e.Before = before.Status
	}
	r.opts.Observer.ready(ctx, e)
}

// object identifies an object of the replicated kind in events.
func (r *Replicator) object(key types.NamespacedName, uid types.UID) Object {
	return Object{APIVersion: r.kind.Resource.GroupVersion().String(), Kind: r.kind.Kind, NamespacedName: key, UID: uid}
}

// statusContains reports whether a status contains all of content, and no condition of a Replicator that
// content lacks.
func statusContains(status any, content map[string]any) bool {
	was, ok := status.(map[string]any)
	if !ok {
		return len(content) == 0
	}
	for field, value := range content {
		if field == "conditions" {
			theirs, _ := was[field].([]any)
			if !hasConditions(theirs, value.([]any)) {
				return false
			}
			continue
		}
		if !equality.Semantic.DeepEqual(was[field], value) {
			return false
		}
	}
	return true
}

func hasConditions(was, now []any) bool {
	left := 0
	for _, c := range was {
		if reported(typeOf(c)) {
			left++
		}
	}
	for _, c := range now {
		if !slices.ContainsFunc(was, func(w any) bool { return equality.Semantic.DeepEqual(w, c) }) {
			return false
		}
		if reported(typeOf(c)) {
			left--
		}
	}
	return left == 0
}

func typeOf(condition any) string {
	c, _ := condition.(map[string]any)
	t, _ := c["type"].(string)
	return t
}

// reported reports whether a Replicator owns the conditions of a type.
func reported(conditionType string) bool {
	return conditionType == string(v1alpha1.AccountConditionReady) || conditionType == string(v1alpha1.AccountConditionPresent) ||
		strings.HasPrefix(conditionType, string(v1alpha1.AccountConditionPresentIn))
}

// ReportConditions is an Options.Report for types with status.conditions and status.observedGeneration. It returns the
// conditions Ready and PresentInAllPeers, RemovalHeld while a deletion is held, and one PresentIn.PEER for each peer
// that is an exception, 32 of these at most. It fails if obj is nil.
func ReportConditions(obj *unstructured.Unstructured, p Presence) (map[string]any, error) {
	if obj == nil {
		return nil, errors.New("account: object is nil")
	}
	return map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": withTransitionTimes(obj, p.conditions(obj.GetGeneration()))}, nil
}

// withTransitionTimes returns now with transition times. A condition keeps the transition time that it has in obj
// if its status is the same there.
func withTransitionTimes(obj *unstructured.Unstructured, now []metav1.Condition) []any {
	var conditions []metav1.Condition
	for _, c := range statusIn(obj).Conditions {
		if meta.FindStatusCondition(now, c.Type) != nil {
			conditions = append(conditions, c)
		}
	}
	for _, c := range now {
		meta.SetStatusCondition(&conditions, c)
	}
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return list(conditions)
}

// reportAccount returns the status of an Account in a central plane.
func reportAccount(obj *unstructured.Unstructured, p Presence) (map[string]any, error) {
	content, err := ReportConditions(obj, p)
	if err != nil {
		return nil, err
	}
	content["phase"] = string(p.phase())
	content["namespace"] = map[string]any{"name": obj.GetName()}
	summary := v1alpha1.PeerSummary{
		Total: int32(p.Total), Present: int32(p.Present), //nolint:gosec // a ring has at most 1024 peers
		Missing: texts(p.Missing()), Unknown: texts(p.Unknown()),
	}
	content["peers"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&summary)
	return content, err
}

// texts returns the first names of a list, as many as fit into a status.
func texts(peers []region.PeerName) []string {
	var out []string
	for _, p := range peers[:min(len(peers), maxExceptions)] {
		out = append(out, string(p))
	}
	return out
}
