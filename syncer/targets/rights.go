// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Rights returns the least rules that suffice upstream for a Controller in a Mode whose clusters sync the given types.
// opts are the Options of the Syncers in Push mode; their Target is ignored. The rules do not include get of the
// Secrets that hold kubeconfigs.
func Rights(mode Mode, opts syncer.Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	own := v1alpha1.Resource("synctargets")
	status := synctarget.Allow(v1alpha1.Resource("synctargets/status"), "patch")
	switch mode {
	case None:
		return []rbacv1.PolicyRule{synctarget.Allow(own, "list", "watch"), status}
	case Pull:
		rules := []rbacv1.PolicyRule{synctarget.KubeSystem(), synctarget.Allow(own, "list", "patch", "watch"), status}
		for _, gr := range permitted(opts.Permit, types) {
			rules = append(rules, synctarget.Allow(gr, "list", "patch")) // to release objects
		}
		return rules
	}
	opts.Target = ""
	rules := syncer.UpstreamRights(opts, types...)
	return append(rules, synctarget.Allow(own, "get", "list", "patch", "watch"), status)
}

// InstallRights returns the least rules that suffice downstream for a Controller to install and remove a Syncer of the
// given types. They include all rights of the Syncer, because an API server lets a client grant only rights that it
// holds. Types that need a Power which opts.Permit lacks are left out. Install.Unscheduled needs
// syncer.UnscheduledRights in addition.
func InstallRights(opts syncer.Options, types ...schema.GroupResource) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		synctarget.Allow(schema.GroupResource{Resource: "namespaces"}, "create", "delete", "get", "patch"),
		synctarget.Allow(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"}, "create", "delete", "get", "patch"),
		synctarget.Allow(schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"}, "create", "delete", "get", "patch"),
	}
	held := []rbacv1.PolicyRule{
		synctarget.Allow(schema.GroupResource{Resource: "nodes"}, "list"),
		synctarget.Allow(schema.GroupResource{Resource: "secrets"}, "create", "delete", "patch"),
		synctarget.Allow(schema.GroupResource{Resource: "serviceaccounts"}, "create", "delete", "patch"),
		synctarget.Allow(schema.GroupResource{Group: "apps", Resource: "deployments"}, "create", "delete", "list", "patch", "watch"),
	}
	for _, gr := range permitted(opts.Permit, types) {
		held = append(held, synctarget.Allow(gr, "create", "delete", "get", "list", "patch", "watch"))
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

// permitted returns those of the types that may be synced with the powers in permit.
func permitted(permit []syncer.Power, types []schema.GroupResource) []schema.GroupResource {
	return slices.DeleteFunc(slices.Clone(types), func(gr schema.GroupResource) bool { return syncer.CheckTypes(permit, gr) != nil })
}
