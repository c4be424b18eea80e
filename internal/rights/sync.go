// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Syncing describes the sync of clusters with an upstream, as far as it affects rights.
type Syncing struct {
	// Downstream is set for a cluster, and unset for the upstream.
	Downstream bool
	// Types are the types that are synced, defined or divided. Nil means the types of workloads for
	// the parts "syncer" and "targets", no definitions for "types", and all kinds for "splitter".
	Types []schema.GroupResource
	// Permit lists the powers that may be synced: see syncer.Power. Types that need another power
	// are left out.
	Permit []syncer.Power
	// Mode selects where syncers run; empty means targets.Push.
	Mode targets.Mode
	// Target is the SyncTarget whose status a syncer writes; empty means that it writes no status.
	Target string
	// Upsync lists the types, among Types, whose objects are synced upstream if they were created
	// downstream.
	Upsync []schema.GroupResource
	// DeleteUpstream means that the deletion of a downstream object deletes its origin.
	DeleteUpstream bool
	// Unscheduled means that downstream pods without a node are counted.
	Unscheduled bool
	// Namespace is the namespace of Secrets with kubeconfigs; empty means that no Secrets are used.
	Namespace string
}

// syncing maps the name of a part to a function that returns the roles that the part needs.
var syncing = map[string]func(Syncing) ([]*rbacv1.ClusterRole, []*rbacv1.Role){
	"syncer": func(s Syncing) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		if s.Downstream {
			return []*rbacv1.ClusterRole{role("atoll-syncer-downstream", s.counting(syncer.DownstreamRights(s.options(), s.synced()...))...)}, nil
		}
		return []*rbacv1.ClusterRole{role("atoll-syncer", syncer.UpstreamRights(s.options(), s.synced()...)...)}, nil
	},
	"targets": controller,
	"types": func(s Syncing) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		return []*rbacv1.ClusterRole{Types(s.Types...)}, nil
	},
	"splitter": func(s Syncing) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
		if s.Downstream {
			return nil, nil
		}
		return []*rbacv1.ClusterRole{Split(s.Types...)}, nil
	},
}

// SyncParts returns the names of the parts that Sync knows.
func SyncParts() []string { return slices.Sorted(maps.Keys(syncing)) }

// Sync returns the least roles that a part needs on one side: "syncer" is a syncer.Syncer or a
// targets.Agent, "targets" is a targets.Controller with all loops in its process, "types" is a
// crds.Controller and "splitter" a splitter.Splitter. ok is false for an unknown name.
func Sync(part string, s Syncing) (cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role, ok bool) {
	of, ok := syncing[part]
	if !ok {
		return nil, nil, false
	}
	cluster, namespaced = of(s)
	return cluster, namespaced, true
}

func (s Syncing) synced() []schema.GroupResource {
	if s.Types == nil {
		return syncer.WorkloadTypes()
	}
	return s.Types
}

// options returns the syncer options that affect rights.
func (s Syncing) options() syncer.Options {
	opts := syncer.Options{Target: s.Target, Permit: s.Permit, Upsync: func(gr schema.GroupResource) bool { return slices.Contains(s.Upsync, gr) }}
	if s.DeleteUpstream {
		opts.OnDownstreamDelete = syncer.DeleteUpstream
	}
	return opts
}

// counting adds the rights for counting pods, if they are counted.
func (s Syncing) counting(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if s.Unscheduled {
		for _, r := range syncer.UnscheduledRights() {
			rules = hold(rules, r)
		}
	}
	return rules
}

// controller returns the roles of a targets.Controller.
func controller(s Syncing) ([]*rbacv1.ClusterRole, []*rbacv1.Role) {
	if s.Downstream {
		switch s.Mode {
		case targets.None:
			return nil, nil
		case targets.Pull:
			return []*rbacv1.ClusterRole{role("atoll-targets-install", s.counting(targets.InstallRights(s.options(), s.synced()...))...)}, nil
		}
		return []*rbacv1.ClusterRole{role("atoll-syncer-downstream", s.counting(syncer.DownstreamRights(s.options(), s.synced()...))...)}, nil
	}
	cluster := []*rbacv1.ClusterRole{role("atoll-targets", targets.Rights(s.Mode, s.options(), s.synced()...)...)}
	if s.Namespace == "" || s.Mode == targets.None {
		return cluster, nil
	}
	read := role("atoll-targets-kubeconfigs", rule(schema.GroupResource{Resource: "secrets"}, "get"))
	return cluster, []*rbacv1.Role{bound(read, s.Namespace)}
}

// Types returns the least ClusterRole for a crds.Controller, on a side (upstream or downstream) where
// its policy writes and deletes definitions. custom lists the types whose objects the Controller may
// have to look for.
func Types(custom ...schema.GroupResource) *rbacv1.ClusterRole {
	rules := []rbacv1.PolicyRule{
		rule(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "create", "delete", "get", "list", "update"),
	}
	for _, gr := range custom {
		rules = append(rules, rule(gr, "list"))
	}
	return role("atoll-types", rules...)
}

// Split returns the least ClusterRole for a splitter.Splitter that divides the given types over
// SyncTargets. No types means all kinds and followers of package splitter.
func Split(types ...schema.GroupResource) *rbacv1.ClusterRole {
	if types == nil {
		for _, kind := range []splitter.Kind{splitter.CronJobs(), splitter.DaemonSets(), splitter.Deployments(), splitter.Jobs(), splitter.StatefulSets()} {
			types = append(types, kind.Resource().GroupResource())
		}
		for _, follower := range []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()} {
			types = append(types, follower.Resource().GroupResource())
		}
	}
	rules := []rbacv1.PolicyRule{rule(syncerv1alpha1.Resource("synctargets"), "list", "watch")}
	for _, gr := range types {
		rules = append(rules,
			rule(gr, "create", "delete", "get", "list", "patch", "watch"),
			rule(schema.GroupResource{Group: gr.Group, Resource: gr.Resource + "/status"}, "patch"),
		)
	}
	return role("atoll-splitter", rules...)
}
