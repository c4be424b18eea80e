// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// placement decides which objects are placed in the cluster of a SyncTarget. It is pure.
type placement struct {
	target string
	label  string
}

// marks returns the labels that place an object in the cluster.
func (p placement) marks() map[string]string {
	return map[string]string{p.label: p.target, v1alpha1.StateLabelPrefix + p.target: v1alpha1.StateSync}
}

// has reports whether o is placed in the cluster, or was and still has the finalizer of its syncer.
func (p placement) has(o metav1.Object) bool {
	for key, value := range p.marks() {
		if o.GetLabels()[key] == value {
			return true
		}
	}
	return slices.Contains(o.GetFinalizers(), p.finalizer())
}

func (p placement) finalizer() string { return v1alpha1.FinalizerPrefix + p.target }

// annotations returns the annotations that the syncer writes.
func (p placement) annotations() []string {
	var all []string
	for _, prefix := range []string{v1alpha1.SyncedAnnotationPrefix, v1alpha1.StatusAnnotationPrefix, v1alpha1.UnscheduledAnnotationPrefix} {
		all = append(all, prefix+p.target)
	}
	return all
}

// implied reports whether a label selector selects only objects that are placed in the cluster.
func (p placement) implied(selector labels.Selector) bool {
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		want, marks := p.marks()[r.Key()]
		one := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		return marks && one && r.Values().Len() == 1 && r.Values().Has(want)
	})
}
