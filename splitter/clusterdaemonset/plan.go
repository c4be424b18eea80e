// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
)

// facts are the input of a decision about one ClusterDaemonSet.
type facts struct {
	set      *unstructured.Unstructured
	clusters []splitter.Cluster
	copies   map[string]*unstructured.Unstructured // its Deployments by cluster
	label    string                                // key of the label that assigns an object to a cluster
	now      time.Time
}

// plan is the decision about one ClusterDaemonSet.
type plan struct {
	parts   []part                       // of the chosen clusters, by name
	surplus []*unstructured.Unstructured // Deployments to delete
	invalid error                        // the spec cannot be carried out: no Deployment is created or changed
	again   time.Duration                // until the plan may change without an event; zero for never
}

// part is the Deployment of one chosen cluster.
type part struct {
	cluster string
	// reachable is false while the cluster is not ready: the Deployment has its last known status.
	reachable bool
	// current is nil if the Deployment does not exist, or desired could not be determined.
	current, desired *unstructured.Unstructured
	state            state
}

// state is how far the write of a Deployment has come.
type state string

const (
	pending state = ""        // not written yet, or the cache does not show it
	applied state = "applied" // the Deployment equals the desired one
	taken   state = "taken"   // another object has the name
	leaving state = "leaving" // the Deployment is being deleted, and is created again afterwards
	failed  state = "failed"  // the write failed
)

// plan decides which Deployments should exist, and which are deleted. It is pure.
func (f facts) plan() plan {
	selector, err := f.read()
	p := plan{invalid: err}
	left := maps.Clone(f.copies)
	for _, c := range slices.SortedFunc(slices.Values(f.clusters), func(a, b splitter.Cluster) int { return strings.Compare(a.Name, b.Name) }) {
		current := f.copies[c.Name]
		if !c.EvictAfter.IsZero() {
			if !c.EvictAfter.After(f.now) {
				continue
			}
			p.again = loop.Sooner(p.again, c.EvictAfter.Sub(f.now))
		}
		switch {
		case err != nil && current == nil:
			continue
		case err == nil && (!selector.Matches(labels.Set(c.Labels)) || c.Unschedulable && current == nil):
			continue
		}
		delete(left, c.Name)
		next := part{cluster: c.Name, reachable: c.Ready == metav1.ConditionTrue, current: current}
		if err == nil {
			next.desired = newCopy(f.set, c.Name, f.label)
		}
		p.parts = append(p.parts, next)
	}
	for _, cluster := range slices.Sorted(maps.Keys(left)) {
		p.surplus = append(p.surplus, left[cluster])
	}
	return p
}

// read returns the selector of clusters. It fails if the spec cannot be carried out in any cluster.
func (f facts) read() (clusters labels.Selector, err error) {
	pods, err := selectorAt(f.set, "selector")
	switch {
	case err != nil:
		return nil, err
	case pods.Empty():
		return nil, errors.New("spec.selector is empty: give the labels of the template")
	}
	given, _, _ := unstructured.NestedStringMap(f.set.Object, "spec", "template", "metadata", "labels")
	if !pods.Matches(labels.Set(given)) {
		return nil, errors.New("spec.selector does not match spec.template.metadata.labels")
	}
	if _, ok, _ := unstructured.NestedFieldNoCopy(f.set.Object, "spec", "clusterSelector"); !ok {
		return labels.Everything(), nil
	}
	return selectorAt(f.set, "clusterSelector")
}

func selectorAt(set *unstructured.Unstructured, field string) (labels.Selector, error) {
	content, _, err := unstructured.NestedMap(set.Object, "spec", field)
	if err != nil {
		return nil, fmt.Errorf("spec.%s: %w", field, err)
	}
	var typed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed); err != nil {
		return nil, fmt.Errorf("spec.%s: %w", field, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil {
		return nil, fmt.Errorf("spec.%s: %w", field, err)
	}
	return selector, nil
}
