// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// report writes the status of a policy: whether the Controller can follow it, and how many clusters
// it chooses.
func (c *Controller) report(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	cache, gvr := c.policyCache, gvrOfPolicies
	if key.Namespace == "" {
		cache, gvr = c.wide.policies, gvrOfWide
	}
	obj, ok := cache.Get(key)
	clusters, known := c.now()
	if !ok || !known || cache.Err() != nil {
		return 0, nil
	}
	chosen, missing, again, err := c.policies.chooses(key, clusters, time.Now())
	conditions := []any{verdict(obj, len(chosen), missing, misread(chosen, clusters), err)}
	if dependents, _, _ := unstructured.NestedBool(obj.Object, "spec", "dependents"); dependents {
		conditions = append(conditions, c.dependentsPlaced(obj)...)
	}
	status := map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions}
	if len(chosen) > 0 {
		status["clusters"] = int64(len(chosen))
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "status": status}}
	desired.SetNamespace(key.Namespace)
	desired.SetName(key.Name)
	desired.SetUID(obj.GetUID())
	_, err = loop.Apply(ctx, c.up.Metadata().Resource(gvr).Namespace(key.Namespace), obj, desired, Manager, "status")
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return 0, loop.ErrBehind // another client has written: the event of its write requeues the policy
	}
	return again, err
}

// misread returns a message about the chosen clusters whose weights cannot be read. The message
// names at most ten of them. It is empty if all weights can be read.
func misread(chosen []string, clusters []splitter.Cluster) (message string) {
	const few = 10
	n := 0
	for _, c := range clusters {
		_, err := c.Weight()
		if err == nil || !slices.Contains(chosen, c.Name) {
			continue
		}
		if n++; n <= few {
			message += "; " + err.Error() + ", counts as absent"
		}
	}
	if n > few {
		message += fmt.Sprintf("; and %d more like it", n-few)
	}
	return message
}

// verdict returns the condition Ready of a policy.
func verdict(obj *unstructured.Unstructured, clusters int, missing *shortage, misread string, err error) map[string]any {
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonComplete, fmt.Sprintf("%d clusters are chosen%s", clusters, misread)
	mode, _, _ := unstructured.NestedString(obj.Object, "spec", "mode")
	suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	switch {
	case err != nil:
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, err.Error()
	case suspended:
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonSuspended, "spec.suspend is set: placed objects stay in their clusters, and others wait"
	case mode == string(v1alpha1.PlacementNone):
		message = "mode None places nothing"
	case missing != nil:
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonTooFewGroups, missing.String()+": placed objects stay in their clusters, and others wait"
	case clusters == 0:
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonNoClusters, "no cluster is chosen: placed objects stay in their clusters"
	}
	return condition(obj, v1alpha1.ConditionReady, status, reason, message)
}

// condition returns a condition of a policy. The condition keeps its lastTransitionTime while its status stays the same.
func condition(obj *unstructured.Unstructured, of v1alpha1.ConditionType, status metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) map[string]any {
	return loop.Condition(obj, declared.Condition(obj, string(of)), string(of), string(status), string(reason), message, time.Now())
}

// chooses returns the clusters that a policy chooses for an object that is present in all clusters, or a bound that no
// choice meets. again is the time until the next toleration of the policy ends, zero if none does.
func (p *policies) chooses(key types.NamespacedName, clusters []splitter.Cluster, now time.Time) (chosen []string, missing *shortage, again time.Duration, err error) {
	p.mu.Lock()
	list := p.of[key.Namespace]
	p.mu.Unlock()
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	for _, q := range list {
		switch {
		case q.name == placedBy(key) && q.err != nil:
			return nil, nil, 0, q.err
		case q.name == placedBy(key):
			clusters, again = Tolerate(q.spec.Tolerations, clusters, now)
			chosen, missing, err = choose(q.spec, "", clusters, names)
			return chosen, missing, again, err
		}
	}
	return nil, nil, 0, nil
}
