// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Placement returns the least ClusterRole for running a placement.Controller with its default
// Workloads and Others on the clusters of splitter.SyncTargets. The role allows the controller to
// list Secrets; the controller keeps only their metadata.
func Placement() *rbacv1.ClusterRole {
	rules := []rbacv1.PolicyRule{
		rule(splitterv1alpha1.Resource("placementpolicies"), "list", "watch"),
		rule(splitterv1alpha1.Resource("placementpolicies/status"), "patch"),
		rule(syncerv1alpha1.Resource("synctargets"), "list", "watch"),
		rule(schema.GroupResource{Group: "apps", Resource: "deployments"}, "list", "patch", "watch"),
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
		rule(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, "list", "watch"))
	return role("atoll-placement", rules...)
}
