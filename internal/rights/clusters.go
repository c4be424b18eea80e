// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Placement returns the least ClusterRole for running a placement.Controller for the workloads and
// its default Others on the clusters of splitter.SyncTargets. No workloads means Deployments. The role
// allows the controller to list Secrets; the controller keeps only their metadata.
func Placement(workloads ...schema.GroupResource) *rbacv1.ClusterRole {
	if workloads == nil {
		workloads = []schema.GroupResource{{Group: "apps", Resource: "deployments"}}
	}
	rules := []rbacv1.PolicyRule{
		rule(splitterv1alpha1.Resource("placementpolicies"), "list", "watch"),
		rule(splitterv1alpha1.Resource("placementpolicies/status"), "patch"),
		rule(splitterv1alpha1.Resource("clusterplacementpolicies"), "list", "watch"),
		rule(splitterv1alpha1.Resource("clusterplacementpolicies/status"), "patch"),
		rule(schema.GroupResource{Resource: "namespaces"}, "list", "watch"), // for namespaceSelector
		rule(syncerv1alpha1.Resource("synctargets"), "list", "watch"),
	}
	for _, gr := range workloads {
		rules = append(rules, rule(gr, "list", "patch", "watch"))
	}
	for _, resource := range []string{"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"} {
		rules = append(rules, rule(schema.GroupResource{Resource: resource}, "list", "patch", "watch"))
	}
	for _, resource := range []string{"ingresses", "networkpolicies"} {
		rules = append(rules, rule(schema.GroupResource{Group: "networking.k8s.io", Resource: resource}, "list", "patch", "watch"))
	}
	// They are not placed; the status of a policy lists them.
	rules = append(rules,
		rule(schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}, "list", "watch"),
		rule(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "list", "watch"),
		rule(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}, "list", "watch"),
		rule(schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, "list", "watch"))
	return role("atoll-placement", rules...)
}

// Declarations returns the least ClusterRole for a declarations.Follower. A Follower that is
// ReadOnly needs no right to patch.
func Declarations() *rbacv1.ClusterRole {
	return role("atoll-declarations",
		rule(splitterv1alpha1.Resource("workloadtypes"), "list", "watch"),
		rule(splitterv1alpha1.Resource("workloadtypes/status"), "patch"))
}

// ClusterDaemonSets returns the least ClusterRole for running a clusterdaemonset.Controller on the clusters of
// splitter.SyncTargets.
func ClusterDaemonSets() *rbacv1.ClusterRole {
	return role("atoll-clusterdaemonsets",
		// The finalizer is written with patch.
		rule(splitterv1alpha1.Resource("clusterdaemonsets"), "get", "list", "patch", "watch"),
		rule(splitterv1alpha1.Resource("clusterdaemonsets/status"), "patch"),
		rule(syncerv1alpha1.Resource("synctargets"), "list", "watch"),
		rule(schema.GroupResource{Group: "apps", Resource: "deployments"}, "create", "delete", "get", "list", "patch", "watch"),
	)
}
