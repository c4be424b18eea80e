// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition returns a condition for the status of an object, in the form of metav1.Condition. before is the object's
// present condition of this type, nil without one. Its lastTransitionTime is kept while the status stays the same. A long
// message is shortened to LongestMessage.
func Condition(obj *unstructured.Unstructured, before map[string]any, kind, status, reason, message string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	if then, ok := before["lastTransitionTime"].(string); ok && before["status"] == status {
		at = then
	}
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": Shorten(message, LongestMessage),
		"lastTransitionTime": at, "observedGeneration": obj.GetGeneration(),
	}
}
