// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/tracker"
)

// unsyncable returns why an object of a core type has no meaning in another cluster; "" if it has a meaning there.
func unsyncable(kind schema.GroupKind, obj *unstructured.Unstructured) string {
	switch kind {
	case schema.GroupKind{Kind: "Secret"}:
		if secretType(obj) == serviceAccountToken {
			return "a token of a ServiceAccount is valid in its own cluster only"
		}
	case schema.GroupKind{Kind: "ConfigMap"}:
		if obj.GetName() == "kube-root-ca.crt" {
			return "each cluster has its own certificate authority"
		}
	}
	return ""
}

// finished reports whether an object is complete. If the downstream object of a complete Job is gone, the syncer does
// not create it again, since the Job would run once more.
func finished(kind schema.GroupKind, obj *unstructured.Unstructured) bool {
	if kind != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
	})
}

// jobLabels are the labels by which a Job of one cluster finds its Pods.
var jobLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// localize removes the fields of an object of a core type that a plain rule cannot remove, since they depend on other
// fields.
func localize(kind schema.GroupKind, obj *unstructured.Unstructured) {
	switch kind {
	case schema.GroupKind{Kind: "Service"}:
		// SingleStack is the default upstream. The default of the cluster may be another one.
		if policy, _, _ := unstructured.NestedString(obj.Object, "spec", "ipFamilyPolicy"); policy == "SingleStack" {
			unstructured.RemoveNestedField(obj.Object, "spec", "ipFamilyPolicy")
		}
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		// A controller of each cluster computes the rules of an aggregated ClusterRole from the cluster's ClusterRoles.
		if obj.Object["aggregationRule"] != nil {
			delete(obj.Object, "rules")
		}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if manual, _, _ := unstructured.NestedBool(obj.Object, "spec", "manualSelector"); manual {
			return
		}
		for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
			for _, label := range jobLabels {
				unstructured.RemoveNestedField(obj.Object, append(slices.Clone(path), label)...)
			}
		}
	}
}

// apply removes the fields of obj that are not sent down. taken reports whether the field of a rule is left to another
// client, which has taken it over downstream.
func (r rules) apply(kind schema.GroupKind, obj *unstructured.Unstructured, taken func(rule) bool) {
	manual, _, _ := unstructured.NestedBool(obj.Object, "spec", "manualSelector")
	ip, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterIP")
	for _, rule := range r {
		switch {
		case rule.owner == Upstream, rule.owner >= FirstWriter && !taken(rule):
		case rule.text == "spec.selector" && manual && kind.Group == "batch":
		default:
			remove(obj.Object, rule.path)
		}
	}
	localize(kind, obj)
	if ip == "None" && kind == (schema.GroupKind{Kind: "Service"}) {
		_ = unstructured.SetNestedField(obj.Object, ip, "spec", "clusterIP") // a Service that is headless upstream is headless downstream too
	}
}

// notSynced are prefixes of labels and annotations that have a meaning on one side only: those that controllers write
// for themselves, and ours. Package tracker knows the keys of tools.
var notSynced = []string{
	"batch.kubernetes.io/job-tracking",
	"control-plane.alpha.kubernetes.io/",
	"deployment.kubernetes.io/",
	"deprecated.daemonset.template.generation",
	"endpoints.kubernetes.io/",
	"kubernetes.io/service-account.uid",
	"pv.kubernetes.io/",
	"volume.beta.kubernetes.io/storage-provisioner", // users set other keys of this prefix, such as the class of a claim
	"volume.kubernetes.io/",

	"fanout.atoll.dev/",
	"splitter.atoll.dev/",
	"syncer.atoll.dev/",
	"synced.syncer.atoll.dev/",
	"unscheduled.syncer.atoll.dev/",
	"state.workload.kcp.io/",
	"status.workload.kcp.io/",
	"workloads.kcp.dev/",
	"workloads.kcp.io/",
}

// synced returns the labels or annotations that are synced. label is the key of the label that assigns objects.
func synced(all map[string]string, label string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool {
		return key == label || tracker.Is(key) || slices.ContainsFunc(notSynced, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return all
}

// unreported removes the field of a status in which a controller keeps notes for itself. They are about Pods that
// exist in one cluster only, and not all servers keep the field when it is empty.
func unreported(kind schema.GroupKind, status map[string]any) {
	if kind == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		delete(status, "uncountedTerminatedPods")
	}
}
