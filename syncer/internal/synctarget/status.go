// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package synctarget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// SetCondition sets one condition of a SyncTarget.
type SetCondition func(v1alpha1.SyncTargetConditionType, metav1.ConditionStatus, v1alpha1.SyncTargetConditionReason, string)

// WriteStatus changes the status of a SyncTarget by server-side apply. It returns a Conflict if the SyncTarget changed
// since target was read.
func WriteStatus(ctx context.Context, up region.API, target *v1alpha1.SyncTarget, change func(now *v1alpha1.SyncTargetStatus, set SetCondition)) error {
	now := target.Status.DeepCopy()
	now.ObservedGeneration = target.Generation
	change(now, func(t v1alpha1.SyncTargetConditionType, status metav1.ConditionStatus, reason v1alpha1.SyncTargetConditionReason, message string) {
		meta.SetStatusCondition(&now.Conditions, metav1.Condition{
			Type: string(t), Status: status, Reason: string(reason), Message: loop.Shorten(message, loop.LongestMessage), ObservedGeneration: target.Generation,
		})
	})
	slices.SortFunc(now.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
	if err != nil {
		return err
	}
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SyncTarget", "status": status,
		"metadata": map[string]any{"name": target.Name, "uid": string(target.UID), "resourceVersion": target.ResourceVersion},
	}}
	_, err = up.Dynamic().Resource(Resource).Apply(ctx, target.Name, want, metav1.ApplyOptions{FieldManager: Manager, Force: true}, "status")
	if err != nil {
		return fmt.Errorf("write the status of SyncTarget %s: %w", target.Name, err)
	}
	return nil
}

// HasEnded reports whether the SyncTarget has the condition Ready with the reason Stopped for its present generation.
// An Agent sets this reason when the SyncTarget is being deleted and its Syncer has ended.
func HasEnded(target *v1alpha1.SyncTarget) bool {
	return slices.ContainsFunc(target.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(v1alpha1.SyncTargetConditionReady) && c.Reason == string(v1alpha1.SyncTargetReasonStopped) && c.ObservedGeneration == target.Generation
	})
}

// Brief joins the first ten of the texts in all, and counts the rest.
func Brief(all []string) string {
	const few = 10
	if len(all) > few {
		return strings.Join(all[:few], ", ") + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, ", ")
}
