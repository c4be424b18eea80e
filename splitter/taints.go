// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// taints reads spec.taints of a SyncTarget. A timeAdded that cannot be read counts as absent.
func taints(obj *unstructured.Unstructured) (list []syncerv1alpha1.Taint) {
	entries, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "taints")
	items, _ := entries.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		t := syncerv1alpha1.Taint{Key: text("key"), Value: text("value"), Effect: corev1.TaintEffect(text("effect"))}
		if at, err := time.Parse(time.RFC3339, text("timeAdded")); err == nil {
			t.TimeAdded = &metav1.Time{Time: at}
		}
		list = append(list, t)
	}
	return list
}

// dated returns a copy of the taints, each with a TimeAdded. A taint without one gets that of the same taint in before, or
// now if before does not have the taint.
func dated(taints, before []syncerv1alpha1.Taint, now time.Time) []syncerv1alpha1.Taint {
	taints = slices.Clone(taints)
	for i := range taints {
		t := &taints[i]
		if t.TimeAdded != nil {
			continue
		}
		t.TimeAdded = &metav1.Time{Time: now}
		for _, b := range before {
			if b.Key == t.Key && b.Value == t.Value && b.Effect == t.Effect {
				t.TimeAdded = b.TimeAdded
			}
		}
	}
	return taints
}

func sameTaint(a, b syncerv1alpha1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
}
