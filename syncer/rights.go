// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// WorkloadTypes returns the built-in types of which a workload usually consists, sorted. They are the default of
// Install.Types.
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
	sortTypes(all)
	return all
}

func sortTypes(all []schema.GroupResource) {
	slices.SortFunc(all, func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}

// withoutStatus are the types of WorkloadTypes that have no status.
var withoutStatus = map[schema.GroupResource]bool{
	{Resource: "configmaps"}: true, {Resource: "secrets"}: true, {Resource: "serviceaccounts"}: true,
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: true,
}

// UpstreamRights returns the least rules that suffice upstream for a Syncer of those types with those Options. With a
// Target they also suffice for its Agent and its Heartbeat. Upsync and OnDownstreamDelete add rules.
//
// There are no rules for a type that needs a Power which Options.Permit lacks: the type is refused, and without these
// rules its objects are not reported one by one.
func UpstreamRights(opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	types = permitted(opts.Permit, types)
	rules := []rbacv1.PolicyRule{kubeSystem()}
	if opts.Target != "" {
		own, status := allow(v1alpha1.Resource("synctargets"), "get", "list", "watch"), allow(v1alpha1.Resource("synctargets/status"), "patch")
		own.ResourceNames, status.ResourceNames = []string{opts.Target}, []string{opts.Target}
		rules = append(rules, own, status)
	}
	rules = append(rules, opts.NamespaceSync.upstreamRights()...)
	raises := func(gr schema.GroupResource) bool { return opts.Upsync != nil && opts.Upsync(gr) }
	if slices.ContainsFunc(types, raises) {
		rules = append(rules, allow(schema.GroupResource{Resource: "namespaces"}, "create"))
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
		rules = append(rules, allow(gr, verbs...))
		if !withoutStatus[gr] {
			rules = append(rules, allow(schema.GroupResource{Group: gr.Group, Resource: gr.Resource + "/status"}, "patch"))
		}
	}
	return rules
}

// DownstreamRights returns the least rules that suffice downstream for a Syncer of those types with those Options,
// except for Unscheduled: see UnscheduledRights. There are no rules for a type that needs a Power which
// Options.Permit lacks. A Rule that gives a field of a status to the Upstream needs one more right: patch of the
// status of its type. Without list of nodes the capacity of the cluster is unknown; everything else works.
func DownstreamRights(opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	rules := append(syncRights(permitted(opts.Permit, types)), allow(nodes.GroupResource(), "list"))
	return append(rules, opts.NamespaceSync.downstreamRights()...)
}

// syncRights returns DownstreamRights without the rules for the capacity and for NamespaceOptions.
func syncRights(types []schema.GroupResource) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{kubeSystem(), allow(schema.GroupResource{Resource: "namespaces"}, "create")}
	for _, gr := range types {
		rules = append(rules, allow(gr, "create", "delete", "get", "list", "patch", "watch"))
	}
	return rules
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
	rules := []rbacv1.PolicyRule{allow(namespaces.GroupResource(), verbs...)}
	if o.Finish {
		rules = append(rules, allow(schema.GroupResource{Resource: "namespaces/finalize"}, "update"),
			allow(schema.GroupResource{Group: "*", Resource: "*"}, "list")) // to know that a namespace is empty
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
	return []rbacv1.PolicyRule{allow(namespaces.GroupResource(), verbs...)}
}

// UnscheduledRights returns the rules that Options.Unscheduled needs downstream in addition to DownstreamRights.
func UnscheduledRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		allow(schema.GroupResource{Resource: "pods"}, "list"),
		allow(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "get"), // the owners of the pods of Deployments
	}
}

// TargetsRights returns the least rules that suffice upstream for Targets in a Mode whose clusters sync those types.
// opts are the Options of the Syncers in Push mode; their Target is ignored. The rules do not include get of the
// Secrets that hold kubeconfigs.
func TargetsRights(mode Mode, opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	own := v1alpha1.Resource("synctargets")
	status := allow(v1alpha1.Resource("synctargets/status"), "patch")
	switch mode {
	case None:
		return []rbacv1.PolicyRule{allow(own, "list", "watch"), status}
	case Pull:
		rules := []rbacv1.PolicyRule{kubeSystem(), allow(own, "list", "patch", "watch"), status}
		for _, gr := range permitted(opts.Permit, types) {
			rules = append(rules, allow(gr, "list", "patch")) // to release objects
		}
		return rules
	}
	opts.Target = ""
	rules := UpstreamRights(opts, types...)
	return append(rules, allow(own, "get", "list", "patch", "watch"), status)
}

// InstallRights returns the least rules that suffice downstream for Targets to install and remove a Syncer of those
// types. They include all rights of the Syncer, because an API server lets a client grant only rights that it holds.
// Types that need a Power which Options.Permit lacks are left out. Install.Unscheduled needs UnscheduledRights in
// addition.
func InstallRights(opts Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		allow(schema.GroupResource{Resource: "namespaces"}, "create", "delete", "get", "patch"),
		allow(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, "create", "delete", "get", "patch"),
		allow(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "create", "delete", "get", "patch"),
	}
	held := []rbacv1.PolicyRule{
		allow(nodes.GroupResource(), "list"),
		allow(schema.GroupResource{Resource: "secrets"}, "create", "delete", "patch"),
		allow(schema.GroupResource{Resource: "serviceaccounts"}, "create", "delete", "patch"),
		allow(schema.GroupResource{Group: "apps", Resource: "deployments"}, "create", "delete", "list", "patch", "watch"),
	}
	for _, gr := range permitted(opts.Permit, types) {
		held = append(held, allow(gr, "create", "delete", "get", "list", "patch", "watch"))
	}
	for _, rule := range held {
		at := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Equal(r.APIGroups, rule.APIGroups) && slices.Equal(r.Resources, rule.Resources)
		})
		if at < 0 {
			rules = append(rules, rule)
			continue
		}
		rules[at].Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(rules[at].Verbs, rule.Verbs))))
	}
	return rules
}

// kubeSystem allows to read the UID that identifies a cluster.
func kubeSystem() rbacv1.PolicyRule {
	rule := allow(schema.GroupResource{Resource: "namespaces"}, "get")
	rule.ResourceNames = []string{"kube-system"}
	return rule
}

func allow(gr schema.GroupResource, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: verbs}
}
