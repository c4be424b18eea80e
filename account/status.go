// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

const (
	// ConditionReady reports whether the Account can be used in its peer. If a Replicator writes
	// this condition, the condition reports on all peers.
	ConditionReady = "Ready"
	// ConditionNamespaceReady reports whether the Account's namespace can be used.
	ConditionNamespaceReady = "NamespaceReady"
	// ConditionRolesReady reports whether the Roles and RoleBindings of the Account's subjects
	// exist in the namespace.
	ConditionRolesReady = "RolesReady"
	// ConditionRemovalHeld reports that the Account was deleted in its home but stays in effect in
	// all peers, and why.
	ConditionRemovalHeld = "RemovalHeld"
)

// status is the part of an Account's status that this package writes. Other fields and conditions
// have other writers.
type status struct {
	ObservedGeneration int64                        `json:"observedGeneration,omitempty"`
	Phase              v1alpha1.AccountPhase        `json:"phase,omitempty"`
	Namespace          *v1alpha1.NamespaceReference `json:"namespace,omitempty"`
	Conditions         []metav1.Condition           `json:"conditions,omitempty"`
}

// ready reports whether the status of obj reports a complete activation of obj's present
// generation. It ignores the condition Ready: in a central plane that is also a peer, Ready is
// about all peers.
func ready(obj *unstructured.Unstructured) bool {
	s := statusIn(obj)
	for _, t := range []string{ConditionNamespaceReady, ConditionRolesReady} {
		c := meta.FindStatusCondition(s.Conditions, t)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != obj.GetGeneration() {
			return false
		}
	}
	return true
}

// statusIn returns this package's part of obj's status.
func statusIn(obj *unstructured.Unstructured) status {
	var s status
	if raw, ok := obj.Object["status"].(map[string]any); ok {
		// A field that does not convert was written by another client, and is overwritten.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s)
	}
	return s
}

// current reads obj live. It returns nil if obj is gone, replaced by another object of its name,
// or being removed.
func current(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	account, err := c.Dynamic().Resource(resource).Get(ctx, obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(c, "read Account "+obj.GetName(), err)
	}
	stage, _, _ := unstructured.NestedString(account.Object, "spec", "fanout", "stage")
	replaced := obj.GetUID() != "" && obj.GetUID() != account.GetUID()
	if replaced || leaving(account) || stage == string(fanoutv1alpha1.StageRemoving) {
		return nil, nil
	}
	return account, nil
}

// replaced reports whether the Account that now has obj's name was added by another operation than
// the one that added obj.
func replaced(ctx context.Context, c *region.Conn, obj *unstructured.Unstructured) (bool, error) {
	account, err := c.Dynamic().Resource(resource).Get(ctx, obj.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, failed(c, "read Account "+obj.GetName(), err)
	}
	was, now := addedBy(obj), addedBy(account)
	return now != "" && now != was, nil
}

// addedBy returns the ID of the operation that reserved the Account's name, which is the same in
// all peers; empty without a claim.
func addedBy(account *unstructured.Unstructured) string {
	operation, _, _ := unstructured.NestedString(account.Object, "spec", "fanout", "claim", "operation")
	return operation
}

// report applies the status that follows from ns and granted, unless the Account is gone or
// replaced. On a Conflict it retries, and fails if the Account's generation has changed.
func report(ctx context.Context, c *region.Conn, account *unstructured.Unstructured, ns namespace, granted access) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := apply(ctx, c, account, ns, granted)
		if !apierrors.IsConflict(err) {
			return err
		}
		now, gone := current(ctx, c, account)
		switch {
		case gone != nil || now == nil:
			return gone
		case now.GetGeneration() != account.GetGeneration():
			// ns and granted belong to the old spec.
			return failed(c, "write status of Account "+account.GetName(), errors.New("its spec changed meanwhile"))
		}
		account = now
		return err
	})
}

// apply writes the status that follows from ns and granted, if it differs. If a Replicator reports
// on all peers, apply leaves Ready, phase and observedGeneration to the Replicator.
func apply(ctx context.Context, c *region.Conn, account *unstructured.Unstructured, ns namespace, granted access) error {
	was := statusIn(account)
	central := meta.FindStatusCondition(was.Conditions, string(v1alpha1.AccountConditionPresent)) != nil
	was.Conditions = slices.DeleteFunc(was.Conditions, func(c metav1.Condition) bool {
		return c.Type != ConditionNamespaceReady && c.Type != ConditionRolesReady && c.Type != ConditionRemovalHeld && (c.Type != ConditionReady || central)
	})
	now := derive(was, account.GetGeneration(), ns, granted)
	reportHold(&now, account)
	if central {
		now.Conditions = slices.DeleteFunc(now.Conditions, func(c metav1.Condition) bool { return c.Type == ConditionReady })
		now.Phase, was.Phase = "", ""
		now.ObservedGeneration, was.ObservedGeneration = 0, 0
	}
	if equality.Semantic.DeepEqual(was, now) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now)
	if err != nil {
		return failed(c, "write status of Account "+account.GetName(), err)
	}
	desired := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	desired.SetAPIVersion(resource.GroupVersion().String())
	desired.SetKind("Account")
	desired.SetName(account.GetName())
	desired.SetResourceVersion(account.GetResourceVersion()) // API servers ignore the UID in writes of a status
	err = applyStatus(ctx, c.Dynamic().Resource(resource), desired, FieldManager, func(t string) bool { return t == ConditionRemovalHeld })
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(c, "write status of Account "+account.GetName(), err)
	}
	return nil
}

// derive returns the status of an Account of the given generation, with the namespace ns and the
// Roles in granted. A condition that does not change keeps its transition time. It is pure.
func derive(was status, generation int64, ns namespace, granted access) status {
	now := status{
		ObservedGeneration: generation,
		Namespace:          &v1alpha1.NamespaceReference{Name: ns.name},
		Conditions:         slices.Clone(was.Conditions),
	}
	made := metav1.Condition{Type: ConditionNamespaceReady, Status: metav1.ConditionTrue, Reason: "Owned",
		Message: fmt.Sprintf("namespace %s was made for this Account", ns.name)}
	roles := metav1.Condition{Type: ConditionRolesReady, Status: metav1.ConditionTrue, Reason: "Complete",
		Message: "the Roles and RoleBindings of its subjects stand in its namespace"}
	ready := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: "Complete",
		Message: "the Account can be used in this peer"}
	switch {
	case ns.terminating:
		made.Status, made.Reason = metav1.ConditionFalse, "Terminating"
		made.Message = fmt.Sprintf("namespace %s is being deleted; it is created again once it is gone", ns.name)
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "NamespaceTerminating", made.Message
	case !ns.ours:
		made.Reason = "Shared"
		made.Message = fmt.Sprintf("namespace %s existed before the Account and stays after it", ns.name)
	}
	switch {
	case granted.noNamespace:
		roles.Status, roles.Reason, roles.Message = metav1.ConditionUnknown, "Pending", "they are created once the namespace can be used"
	case len(granted.foreign) > 0:
		roles.Status, roles.Reason = metav1.ConditionFalse, "RolesConflict"
		roles.Message = fmt.Sprintf("%s in namespace %s existed before the Account and is not changed: delete or rename it",
			strings.Join(granted.foreign, ", "), ns.name)
	case granted.refused != nil:
		roles.Status, roles.Reason, roles.Message = metav1.ConditionFalse, "RolesRefused", brief(granted.refused.Error())
	}
	if ready.Status == metav1.ConditionTrue && roles.Status != metav1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = roles.Status, roles.Reason, roles.Message
	}
	for _, c := range []metav1.Condition{made, roles, ready} {
		c.ObservedGeneration = generation
		meta.SetStatusCondition(&now.Conditions, c)
	}
	now.Phase = phase(now.Conditions)
	return now
}

// phase returns a one-word summary of the conditions for people.
func phase(conditions []metav1.Condition) v1alpha1.AccountPhase {
	if meta.IsStatusConditionTrue(conditions, ConditionReady) {
		return v1alpha1.AccountReady
	}
	return v1alpha1.AccountUnready
}

// longest is the greatest length of a message in a condition, in bytes.
const longest = 1024

// brief returns text as one line of bounded length.
func brief(text string) string {
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest-3], "") + "..."
}
