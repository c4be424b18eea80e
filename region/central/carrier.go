// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	operatorv1alpha1 "github.com/atoll-dev/atoll/region/operator/v1alpha1"
)

// carrierWriting is the last written status of a KubeCarrier. The cache may not have it yet.
type carrierWriting struct {
	version string
	status  operatorv1alpha1.KubeCarrierStatus
	budget  loop.Budget
}

// report writes the status of one KubeCarrier of the plane, if it differs.
func (m *Master) report(ctx context.Context, name string) error {
	obj, ok := m.carriers.Get(types.NamespacedName{Name: name})
	if !ok {
		delete(m.written, name) // safe: there is one worker
		return nil
	}
	if !loop.OwnsKey(m.opts.Shards, name) {
		return nil
	}
	carrier := &operatorv1alpha1.KubeCarrier{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, carrier); err != nil {
		return fmt.Errorf("read KubeCarrier %s: %w", name, err)
	}
	w, ok := m.written[name]
	if !ok {
		w.budget = newBudget()
	}
	if w.version == carrier.ResourceVersion {
		carrier.Status = w.status
	}
	running, settles, failed := m.loops()
	if settles > 0 {
		m.queue.AddAfter(name, settles)
	}
	now := time.Now()
	status := carrierStatus(carrier, running, failed, now)
	if equality.Semantic.DeepEqual(status, carrier.Status) {
		return nil
	}
	if wait := w.budget.Take(now); wait > 0 {
		m.written[name] = w
		m.queue.AddAfter(name, wait)
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("write KubeCarrier %s: %w", name, err)
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	desired.SetAPIVersion(operatorv1alpha1.GroupVersion.String())
	desired.SetKind("KubeCarrier")
	desired.SetName(name)
	desired.SetUID(carrier.UID)
	if _, err := loop.Apply(ctx, m.plane.Dynamic().Resource(carrierResource), obj, desired, FieldManager, "status"); err != nil {
		return err
	}
	m.written[name] = carrierWriting{version: carrier.ResourceVersion, status: status, budget: w.budget}
	return nil
}

// carrierStatus returns the status for the state of the loops. An installation that is no master has no loops.
func carrierStatus(carrier *operatorv1alpha1.KubeCarrier, running bool, failed error, now time.Time) operatorv1alpha1.KubeCarrierStatus {
	next := *carrier.Status.DeepCopy()
	next.ObservedGeneration = carrier.Generation
	ready := metav1.Condition{
		Type: string(operatorv1alpha1.KubeCarrierConditionReady), ObservedGeneration: carrier.Generation, LastTransitionTime: metav1.NewTime(now),
		Status: metav1.ConditionTrue, Reason: string(operatorv1alpha1.KubeCarrierReasonComplete),
	}
	next.Phase = operatorv1alpha1.KubeCarrierReady
	say := func(phase operatorv1alpha1.KubeCarrierPhase, status metav1.ConditionStatus, reason operatorv1alpha1.KubeCarrierConditionReason, message string) {
		next.Phase = phase
		ready.Status, ready.Reason, ready.Message = status, string(reason), bounded(message)
	}
	switch {
	case carrier.DeletionTimestamp != nil:
		say(operatorv1alpha1.KubeCarrierTerminating, metav1.ConditionFalse, operatorv1alpha1.KubeCarrierReasonRemoving, "the KubeCarrier is being deleted")
	case !carrier.Spec.Master && running, carrier.Spec.Master && !running && failed == nil:
		say(operatorv1alpha1.KubeCarrierPending, metav1.ConditionUnknown, operatorv1alpha1.KubeCarrierReasonPending, "the loops of the master are starting or stopping")
	case carrier.Spec.Master && failed != nil:
		say(operatorv1alpha1.KubeCarrierNotReady, metav1.ConditionFalse, operatorv1alpha1.KubeCarrierReasonIncomplete,
			fmt.Sprintf("the loops of the master ended: %v", failed))
	}
	meta.SetStatusCondition(&next.Conditions, ready)
	return next
}
