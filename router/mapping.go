// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/region"
)

// systemPrefix begins the names that Kubernetes reserves; their meaning differs from cluster to cluster.
const systemPrefix = "system:"

// identify applies Options.Map to id for region k and checks the resulting identity.
func (r *Router) identify(k region.Key, id Identity) (Identity, error) {
	if id.kind == impersonated && r.opts.Map != nil {
		u, err := r.opts.Map(k, id.user)
		if err != nil {
			return Identity{}, fmt.Errorf("%w: user %q has no identity in the region: %w", ErrIdentity, id.user.Name, err)
		}
		id = Impersonate(u)
	}
	return id, r.guards.admit(r.opts, id)
}

// PrefixSystem returns a Mapping for users that another cluster authenticated, such as the cluster of a gateway. The
// Mapping puts prefix before names and groups that begin with "system:", as in
// "hub:system:serviceaccount:ci:deployer", since they have a meaning only in the cluster that authenticated the user.
// Without a Mapping, the default Options refuse such names and groups.
func PrefixSystem(prefix string) Mapping {
	prefixed := func(name string) string {
		if strings.HasPrefix(name, systemPrefix) {
			return prefix + name
		}
		return name
	}
	return func(_ region.Key, u User) (User, error) {
		if prefix == "" || strings.HasPrefix(prefix, systemPrefix) {
			return User{}, fmt.Errorf("the prefix %q would leave the names in %q", prefix, systemPrefix)
		}
		u.Name = prefixed(u.Name)
		u.Groups = slices.Clone(u.Groups)
		for i, group := range u.Groups {
			u.Groups[i] = prefixed(group)
		}
		return u, nil
	}
}
