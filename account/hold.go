// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
)

// holder reads how the removal of an Account stands that a plain delete requests.
var holder = fanout.Kind{Resource: resource, Kind: "Account", Mode: fanout.Everywhere}

// leaving says whether account was deleted and is not in force any longer: one whose
// removal is only requested is.
func leaving(account *unstructured.Unstructured) bool {
	if account.GetDeletionTimestamp() == nil {
		return false
	}
	_, requested := holder.Hold(account)
	return !requested
}

// reportHold says in the conditions of s why the removal of account is held, or no
// longer says it.
func reportHold(s *status, account *unstructured.Unstructured) {
	held, _ := holder.Hold(account)
	if held.Reason == "" {
		meta.RemoveStatusCondition(&s.Conditions, ConditionRemovalHeld)
		return
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: ConditionRemovalHeld, Status: metav1.ConditionTrue, Reason: held.Reason, Message: brief(held.Message),
		ObservedGeneration: account.GetGeneration(),
	})
}
