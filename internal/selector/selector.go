// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Read returns the selector of an object. If it cannot be read, the result selects nothing.
func Read(content map[string]any) labels.Selector {
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector); err != nil {
		return labels.Nothing()
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return labels.Nothing()
	}
	return s
}
