// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// maxValue is the limit of a property's value, in characters.
const maxValue = 1024

// identity returns the profile of a peer without its status.
func (p *Publisher) identity(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"displayName": name, "clusterManager": map[string]any{"name": p.opts.Manager}},
	}}
	obj.SetGroupVersionKind(inventory.ClusterProfileSchemeGroupVersionKind)
	obj.SetNamespace(p.opts.Namespace)
	obj.SetName(name)
	obj.SetLabels(map[string]string{inventory.LabelClusterManagerKey: p.opts.Manager})
	return obj
}

// statusOf returns the profile of a peer with nothing but its status. current is the profile as it is; now is the time
// of a transition.
func statusOf(current *unstructured.Unstructured, peer *region.Peer, f facts, now time.Time) *unstructured.Unstructured {
	condition := conditionOf(current, f, now)
	status := map[string]any{
		"conditions": []any{map[string]any{
			"type": condition.Type, "status": string(condition.Status), "reason": condition.Reason, "message": condition.Message,
			"lastTransitionTime": condition.LastTransitionTime.UTC().Format(time.RFC3339),
		}},
	}
	if f.cluster.version != "" {
		status["version"] = map[string]any{"kubernetes": loop.Shorten(f.cluster.version, maxValue)}
	}
	// The Go type of a property always has a lastObservedTime, which the API server would refuse as null.
	var properties []any
	for _, q := range propertiesOf(peer, f) {
		properties = append(properties, map[string]any{"name": q.Name, "value": q.Value})
	}
	if properties != nil {
		status["properties"] = properties
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	obj.SetGroupVersionKind(inventory.ClusterProfileSchemeGroupVersionKind)
	obj.SetNamespace(current.GetNamespace())
	obj.SetName(current.GetName())
	obj.SetUID(current.GetUID())
	return obj
}

// conditionOf returns the condition ControlPlaneHealthy. Its time is that of the last change of its status.
func conditionOf(current *unstructured.Unstructured, f facts, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: inventory.ClusterConditionControlPlaneHealthy, Status: metav1.ConditionUnknown, Reason: f.state.String(),
		Message: "the API server has not answered a probe yet", LastTransitionTime: metav1.NewTime(now),
	}
	switch f.state {
	case region.Healthy:
		c.Status, c.Message = metav1.ConditionTrue, "the API server answers"
	case region.Unhealthy:
		c.Status, c.Message = metav1.ConditionFalse, "several probes in a row failed"
		if f.cause != region.CauseUnknown {
			c.Message += ": " + string(f.cause)
		}
	case region.Unknown:
	}
	if profile, err := decode(current); err == nil {
		if before := meta.FindStatusCondition(profile.Status.Conditions, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return c
}

// propertiesOf returns the properties of a peer. A ClusterProperty that exceeds the limit is left out, because a profile
// must have its value unchanged.
func propertiesOf(peer *region.Peer, f facts) []inventory.Property {
	var properties []inventory.Property
	for n, list := range lists(peer.Regions) {
		properties = append(properties, inventory.Property{Name: regionsProperty(n + 1), Value: list})
	}
	for _, q := range []inventory.Property{
		{Name: UIDProperty, Value: string(f.cluster.uid)},
		{Name: ClusterIDProperty, Value: f.cluster.id},
		{Name: ClusterSetProperty, Value: f.cluster.clusterSet},
	} {
		if q.Value != "" && utf8.RuneCountInString(q.Value) <= maxValue {
			properties = append(properties, q)
		}
	}
	return properties
}

// lists returns the regions as text, in parts that a property can hold.
func lists(keys []region.Key) []string {
	var parts []string
	var part strings.Builder
	for _, key := range keys {
		text := key.String()
		switch {
		case part.Len() == 0:
		case part.Len()+len(",")+len(text) > maxValue:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(',')
		}
		part.WriteString(text)
	}
	if part.Len() > 0 {
		parts = append(parts, part.String())
	}
	return parts
}

// isOurs reports whether a Publisher with this Manager made the profile.
func (p *Publisher) isOurs(obj *unstructured.Unstructured) bool {
	manager, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterManager", "name")
	return manager == p.opts.Manager && loop.Wrote(obj, FieldManager, "spec", "clusterManager", "name")
}

// isLabeled reports whether the profile has the label of this Manager.
func (p *Publisher) isLabeled(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[inventory.LabelClusterManagerKey] == p.opts.Manager
}

// describe names a profile in errors.
func (p *Publisher) describe(name string) string {
	return fmt.Sprintf("ClusterProfile %s/%s", p.opts.Namespace, name)
}
