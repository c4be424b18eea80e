// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// Coordinate returns the least ClusterRole for running a fanout.Coordinator with account.Kinds, and
// for making peers a ring. It includes the rights in the Roles of Accounts, because an API server
// lets a user grant only rights that the user holds. With the verbs escalate and bind the user need
// not hold them, but these verbs amount to all rights.
func Coordinate() *rbacv1.ClusterRole {
	var rules []rbacv1.PolicyRule
	for _, kind := range account.Kinds() {
		rules = append(rules, rule(kind.Resource.GroupResource(), "create", "delete", "get", "list", "update"))
	}
	accounts := account.Kind().Resource.GroupResource()
	rules = append(rules,
		// The status is applied by server-side apply.
		rule(schema.GroupResource{Group: accounts.Group, Resource: accounts.Resource + "/status"}, "patch"),
		rule(fanoutv1alpha1.Resource("peersets"), "create", "get", "update"),
		// The namespace of each Account; kube-system's UID is the cluster's identity.
		rule(schema.GroupResource{Resource: "namespaces"}, "create", "delete", "get"),
		// The Roles and RoleBindings of each Account.
		rule(schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}, "create", "delete", "list", "patch"),
		rule(schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, "create", "delete", "list", "patch"),
	)
	granted := account.DefaultRights()
	for _, role := range slices.Sorted(maps.Keys(granted)) {
		for _, held := range granted[role] {
			rules = hold(rules, held)
		}
	}
	return role("atoll", rules...)
}

// Kinds returns the least ClusterRole in a peer for running a fanout.Coordinator with kinds of these types, in peers that
// are members of a ring already: Coordinate has the rights to make them members.
func Kinds(types ...schema.GroupResource) *rbacv1.ClusterRole {
	var rules []rbacv1.PolicyRule
	for _, of := range types {
		rules = append(rules, rule(of, "create", "delete", "get", "list", "update"))
	}
	return role("atoll-kinds", append(rules, rule(fanoutv1alpha1.Resource("peersets"), "get", "update"), kubeSystem())...)
}

// CoordinateCentral returns the least ClusterRole in a central plane for the log that coordinators
// share, a kubelog.Log.
func CoordinateCentral() *rbacv1.ClusterRole {
	return role("atoll-central", rule(fanoutv1alpha1.Resource("operations"), "create", "delete", "get", "list", "patch"))
}

// Accounts returns the least ClusterRole in a peer for running an account.Controller and an
// account.Replicator, in addition to Coordinate.
func Accounts() *rbacv1.ClusterRole {
	return role("atoll-accounts",
		rule(account.Kind().Resource.GroupResource(), "watch"),
		rule(fanoutv1alpha1.Resource("peersets"), "list", "watch"),
		rule(schema.GroupResource{Resource: "namespaces"}, "list", "watch"),
		rule(schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}, "watch"),
		rule(schema.GroupResource{Group: rbacv1.GroupName, Resource: "rolebindings"}, "watch"),
	)
}

// AccountsCentral returns the least ClusterRole in a central plane for running an
// account.Replicator.
func AccountsCentral() *rbacv1.ClusterRole {
	accounts := account.Kind().Resource.GroupResource()
	return role("atoll-accounts-central",
		// The finalizer is written with patch.
		rule(accounts, "get", "list", "patch", "watch"),
		rule(schema.GroupResource{Group: accounts.Group, Resource: accounts.Resource + "/status"}, "patch"),
		rule(schema.GroupResource{Resource: "namespaces"}, "get"),
	)
}

// Publish returns the least ClusterRole for running an account.Catalog.
func Publish() *rbacv1.ClusterRole {
	regions := accountv1alpha1.Resource("regions")
	return role("atoll-catalog",
		rule(account.Kind().Resource.GroupResource(), "list", "watch"),
		rule(schema.GroupResource{Resource: "namespaces"}, "list", "watch"),
		rule(regions, "create", "delete", "list", "patch", "watch"),
		rule(schema.GroupResource{Group: regions.Group, Resource: regions.Resource + "/status"}, "patch"),
	)
}

// Claims returns the least ClusterRole in a peer for running a claim.Arbiter.
func Claims() *rbacv1.ClusterRole {
	return role("atoll-claims",
		rule(regionv1alpha1.Resource("regionclaims"), "create", "delete", "get", "list", "watch"),
		rule(regionv1alpha1.Resource("regionclaims/status"), "patch"),
		rule(regionv1alpha1.Resource("serviceclusters"), "get", "list", "watch"),
		rule(regionv1alpha1.Resource("serviceclusters/status"), "patch"),
		// kube-system's UID is the cluster's identity.
		rule(schema.GroupResource{Resource: "namespaces"}, "get"),
	)
}

// ServiceClusters returns the least ClusterRole in a peer for running a servicecluster.Controller. The right to read
// Secrets holds in all namespaces, because accounts come and go. Where all accounts are known, bind the rule about Secrets
// in their namespaces instead.
func ServiceClusters() *rbacv1.ClusterRole {
	return role("atoll-serviceclusters",
		rule(regionv1alpha1.Resource("serviceclusters"), "list", "watch"),
		rule(regionv1alpha1.Resource("serviceclusters/status"), "patch"),
		rule(schema.GroupResource{Resource: "secrets"}, "get"),
	)
}

// ClaimsCentral returns the least ClusterRole in a central plane for running a claim.Arbiter. It is
// to be bound in the namespace of the decisions.
func ClaimsCentral() *rbacv1.ClusterRole {
	return role("atoll-claims-central",
		rule(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "create", "delete", "get", "list", "update", "watch"),
	)
}

// hold adds the verbs of held to the rule in rules for the same groups and resources, or appends
// held if rules has no such rule.
func hold(rules []rbacv1.PolicyRule, held rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for i, r := range rules {
		if slices.Equal(r.APIGroups, held.APIGroups) && slices.Equal(r.Resources, held.Resources) {
			rules[i].Verbs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Verbs, held.Verbs))))
			return rules
		}
	}
	return append(rules, held)
}

// Install returns the least ClusterRole for installing the CRDs.
func Install() *rbacv1.ClusterRole {
	return role("atoll-install",
		rule(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "create", "get", "patch", "update"),
	)
}

// YAML returns the documents of roles.
func YAML(cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role) ([]byte, error) {
	var out bytes.Buffer
	add := func(role any) error {
		text, err := yaml.Marshal(role)
		out.WriteString("---\n")
		out.Write(text)
		return err
	}
	for _, role := range cluster {
		if err := add(role); err != nil {
			return nil, err
		}
	}
	for _, role := range namespaced {
		if err := add(role); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      rules,
	}
}

func rule(resource schema.GroupResource, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs}
}
