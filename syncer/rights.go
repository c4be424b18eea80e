// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// WorkloadTypes returns the built-in types of which a workload usually consists, sorted. They are the default of
// targets.Install.Types.
func WorkloadTypes() []schema.GroupResource {
	var all []schema.GroupResource
	for group, resources := range map[string][]string{
		"":                  {"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"},
		"apps":              {"daemonsets", "deployments", "statefulsets"},
		"autoscaling":       {"horizontalpodautoscalers"},
		"batch":             {"cronjobs", "jobs"},
		"networking.k8s.io": {"ingresses", "networkpolicies"},
		"policy":            {"poddisruptionbudgets"},
	} {
		for _, resource := range resources {
			all = append(all, schema.GroupResource{Group: group, Resource: resource})
		}
	}
	synctarget.SortTypes(all)
	return all
}

// withoutStatus are the types of WorkloadTypes that have no status.
var withoutStatus = map[schema.GroupResource]bool{
	{Resource: "configmaps"}: true, {Resource: "secrets"}: true, {Resource: "serviceaccounts"}: true,
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: true,
}

// UpstreamRights returns the least rules that suffice upstream for a Syncer of those types with those Options. With a
// Target they also suffice for its targets.Agent and its Heartbeat. Upsync and OnDownstreamDelete add rules.
//
// There are no rules for a type that needs a Power which Options.Permit lacks: the type is refused, and without these
// rules its objects are not reported one by one.
func UpstreamRights(opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	types = permitted(opts.Permit, types)
	rules := []rbacv1.PolicyRule{synctarget.KubeSystem()}
	if opts.Target != "" {
		own, status := synctarget.Allow(v1alpha1.Resource("synctargets"), "get", "list", "watch"), synctarget.Allow(v1alpha1.Resource("synctargets/status"), "patch")
		own.ResourceNames, status.ResourceNames = []string{opts.Target}, []string{opts.Target}
		rules = append(rules, own, status)
	}
	rules = append(rules, opts.NamespaceSync.upstreamRights()...)
	raises := func(gr schema.GroupResource) bool { return opts.Upsync != nil && opts.Upsync(gr) }
	if slices.ContainsFunc(types, raises) {
		rules = append(rules, synctarget.Allow(schema.GroupResource{Resource: "namespaces"}, "create"))
	}
	for _, gr := range types {
		verbs := []string{"get", "list", "patch", "watch"}
		if raises(gr) {
			verbs = append(verbs, "create")
		}
		if raises(gr) || opts.OnDownstreamDelete == DeleteUpstream || opts.NamespaceSync.Finish {
			verbs = append(verbs, "delete")
		}
		slices.Sort(verbs)
		rules = append(rules, synctarget.Allow(gr, verbs...))
		if !withoutStatus[gr] {
			rules = append(rules, synctarget.Allow(schema.GroupResource{Group: gr.Group, Resource: gr.Resource + "/status"}, "patch"))
		}
	}
	return rules
}

// DownstreamRights returns the least rules that suffice downstream for a Syncer of those types with those Options,
// except for Unscheduled: see UnscheduledRights. There are no rules for a type that needs a Power which Options.Permit
// lacks. A Rule that gives a field of a status to the Upstream needs one more right: patch of the status of its type.
// Without the right to list nodes, the capacity of the cluster is unknown, and everything else works.
func DownstreamRights(opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	rules := append(synctarget.SyncRights(permitted(opts.Permit, types)), synctarget.Allow(nodes.GroupResource(), "list"))
	return append(rules, opts.NamespaceSync.downstreamRights()...)
}

// upstreamRights returns the rules that NamespaceOptions add upstream.
func (o NamespaceOptions) upstreamRights() []rbacv1.PolicyRule {
	if !o.enabled() {
		return nil
	}
	verbs := []string{"get", "list", "watch"}
	if o.Finish || o.Delete {
		verbs = []string{"get", "list", "patch", "watch"}
	}
	rules := []rbacv1.PolicyRule{synctarget.Allow(namespaces.GroupResource(), verbs...)}
	if o.Finish {
		rules = append(rules, synctarget.Allow(schema.GroupResource{Resource: "namespaces/finalize"}, "update"),
			synctarget.Allow(schema.GroupResource{Group: "*", Resource: "*"}, "list")) // to know that a namespace is empty
	}
	return rules
}

// downstreamRights returns the rules that NamespaceOptions add downstream.
func (o NamespaceOptions) downstreamRights() []rbacv1.PolicyRule {
	if !o.enabled() {
		return nil
	}
	verbs := []string{"list", "patch", "watch"}
	if o.Delete {
		verbs = []string{"delete", "list", "patch", "watch"}
	}
	return []rbacv1.PolicyRule{synctarget.Allow(namespaces.GroupResource(), verbs...)}
}

// UnscheduledRights returns the rules that Options.Unscheduled needs downstream in addition to DownstreamRights.
func UnscheduledRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		synctarget.Allow(schema.GroupResource{Resource: "pods"}, "list"),
		synctarget.Allow(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "get"), // the owners of the pods of Deployments
	}
}
