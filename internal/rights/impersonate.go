// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Impersonation lists the identities that a router may impersonate in a peer.
type Impersonation struct {
	Users   []string            // service accounts as system:serviceaccount:NAMESPACE:NAME
	AnyUser bool                // any user except nodes and service accounts; needs On
	Groups  []string            // besides those that the server adds itself
	UIDs    []string            // of users
	Extra   map[string][]string // by key, the values
	// On limits the requests that may be made as another user; that user needs the rights as well.
	// On needs servers with constrained impersonation (Kubernetes 1.36). Empty means no limit.
	On []rbacv1.PolicyRule
}

const (
	systemPrefix         = "system:"
	serviceAccountPrefix = "system:serviceaccount:"
)

// Impersonate returns the least roles that a router over a region.Ring needs in a peer for i: one
// ClusterRole, and a Role for each namespace with service accounts of i, since a ClusterRole would
// allow a service account's name in all namespaces. It fails if i would include the rights of
// Kubernetes' own components.
func Impersonate(i Impersonation) (*rbacv1.ClusterRole, []*rbacv1.Role, error) {
	users, accounts, err := i.people()
	if err != nil {
		return nil, nil, err
	}
	verb, core, on := "impersonate", "", ""
	if len(i.On) > 0 {
		verb, core, on = "impersonate:user-info", authenticationv1.GroupName, "impersonate-on:user-info:"
	}
	cluster := role("atoll-impersonate")
	named := func(group, resource string, names []string) {
		if len(names) > 0 {
			r := rule(schema.GroupResource{Group: group, Resource: resource}, verb)
			r.ResourceNames = slices.Compact(slices.Sorted(slices.Values(names)))
			cluster.Rules = append(cluster.Rules, r)
		}
	}
	if i.AnyUser {
		cluster.Rules = append(cluster.Rules, rule(schema.GroupResource{Group: core, Resource: "users"}, verb))
	} else {
		named(core, "users", users)
	}
	named(core, "groups", i.Groups)
	named(authenticationv1.GroupName, "uids", i.UIDs)
	for _, key := range slices.Sorted(maps.Keys(i.Extra)) {
		named(authenticationv1.GroupName, "userextras/"+key, i.Extra[key])
	}
	if len(users) > 0 || i.AnyUser {
		cluster.Rules = append(cluster.Rules, doing(i.On, on)...)
	}
	var roles []*rbacv1.Role
	if len(accounts) > 0 && len(i.On) > 0 {
		verb, core = "impersonate:serviceaccount", authenticationv1.GroupName
		cluster.Rules = append(cluster.Rules, doing(i.On, "impersonate-on:serviceaccount:")...)
	}
	cluster.Rules = append(cluster.Rules, kubeSystem())
	for _, namespace := range slices.Sorted(maps.Keys(accounts)) {
		r := rule(schema.GroupResource{Group: core, Resource: "serviceaccounts"}, verb)
		r.ResourceNames = slices.Compact(slices.Sorted(slices.Values(accounts[namespace])))
		roles = append(roles, &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name},
			Rules:      []rbacv1.PolicyRule{r},
		})
	}
	return cluster, roles, nil
}

// people returns the users, and the service accounts by namespace.
func (i Impersonation) people() (users []string, accounts map[string][]string, err error) {
	switch {
	case len(i.Users) == 0 && !i.AnyUser:
		return nil, nil, errors.New("no user to impersonate is named")
	case i.AnyUser && len(i.On) == 0:
		return nil, nil, errors.New("any user would include the controller manager: name the users, or limit the requests, for which servers exclude nodes and service accounts")
	}
	if users, accounts, err = divide(i.Users); err != nil {
		return nil, nil, err
	}
	if len(accounts) > 0 && len(i.On) > 0 && len(i.Groups)+len(i.UIDs)+len(i.Extra) > 0 {
		// Servers then treat a service account as another kind of user, which has none of these
		// fields. Two separate roles can grant both kinds.
		return nil, nil, errors.New("constrained impersonation of a service account allows no groups, UID and extra: print its role separately")
	}
	for what, names := range map[string][]string{"user": users, "group": i.Groups, "UID": i.UIDs} {
		for _, name := range names {
			if err := ordinary(what, name); err != nil {
				return nil, nil, err
			}
		}
	}
	for key, values := range i.Extra {
		if err := readable(key, values); err != nil {
			return nil, nil, err
		}
	}
	return users, accounts, nil
}

// divide returns the names that are no service accounts, and the service accounts by namespace.
func divide(names []string) (users []string, accounts map[string][]string, err error) {
	accounts = map[string][]string{}
	for _, user := range names {
		account, ok := strings.CutPrefix(user, serviceAccountPrefix)
		if !ok {
			users = append(users, user)
			continue
		}
		namespace, name, ok := strings.Cut(account, ":")
		if !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, nil, fmt.Errorf("user %q is no service account: write %sNAMESPACE:NAME", user, serviceAccountPrefix)
		}
		accounts[namespace] = append(accounts[namespace], name)
	}
	return users, accounts, nil
}

// readable returns an error unless servers read an extra key and its values exactly as the caller
// wrote them.
func readable(key string, values []string) error {
	switch {
	case key == "" || key != strings.ToLower(key):
		return fmt.Errorf("extra key %q: servers read keys in lower case", key)
	case len(values) == 0:
		return fmt.Errorf("extra key %q has no value: without one, all would be allowed", key)
	case slices.Contains(values, ""):
		return fmt.Errorf("extra key %q has an empty value", key)
	}
	return nil
}

func ordinary(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("a %s is empty: without a name, all would be allowed", what)
	case name == "*":
		return fmt.Errorf("%s %q: name each", what, name)
	case what != "UID" && strings.HasPrefix(name, systemPrefix):
		return fmt.Errorf("%s %q is one of Kubernetes' own: an impersonator would have its rights", what, name)
	}
	return nil
}

// doing returns the rules with the verbs prefixed for impersonators.
func doing(rules []rbacv1.PolicyRule, prefix string) []rbacv1.PolicyRule {
	var prefixed []rbacv1.PolicyRule
	for _, r := range rules {
		r := *r.DeepCopy()
		for i, verb := range r.Verbs {
			r.Verbs[i] = prefix + verb
		}
		slices.Sort(r.Verbs)
		prefixed = append(prefixed, r)
	}
	return prefixed
}
