// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
)

// The Controller restores a Role with the configured Rights.
func TestControllerOptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights := Rights{v1alpha1.AccountTenant: []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"databases"}, Verbs: []string{"get"}}}}
		ring, c := newRing(t, fanout.ServiceClusters(), KindWith(rights))
		_, err := c.Add(t.Context(), newAccount("acme", []any{"Tenant"}, alice), fanout.AddOptions{})
		require.NoError(t, err)
		control(t, ring, ControllerOptions{Rights: rights, Workers: 1})
		eu := connTo(t, ring, "eu-west")
		was := get(t, eu, rolesResource, "acme", "kubecarrier-tenant").GetUID()
		deleteIn(t, eu, rolesResource, "acme", "kubecarrier-tenant")
		eventually(t, func() bool {
			obj := get(t, eu, rolesResource, "acme", "kubecarrier-tenant")
			return obj != nil && obj.GetUID() != was
		})
		rules, _, err := unstructured.NestedSlice(get(t, eu, rolesResource, "acme", "kubecarrier-tenant").Object, "rules")
		require.NoError(t, err)
		require.Equal(t, []any{map[string]any{"apiGroups": []any{"example.com"}, "resources": []any{"databases"}, "verbs": []any{"get"}}}, rules)
	})
}

// A replica of the program publishes only to the tenants of its shard.
func TestCatalogOfAShard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		serve(t, ring)
		for _, name := range []string{"mine", "other"} {
			_, err := c.Add(t.Context(), newAccount(name, []any{"Tenant"}), fanout.AddOptions{})
			require.NoError(t, err)
		}
		eu := connTo(t, ring, "eu-west")
		catalog, err := NewCatalog(eu, ring, CatalogOptions{Shard: some{prefix: "Catalog/mine"}})
		require.NoError(t, err)
		run(t, catalog.Start)
		all := []string{"eu-west-1.loodse", "eu-west-1.not-loodse", "us-east-1.loodse"}
		eventually(t, func() bool { return slices.Equal(all, published(t, eu, "mine")) })
		quiet(t, ring.Server("eu-west"))
		require.Empty(t, published(t, eu, "other"), "another replica owns this tenant")
	})
}
