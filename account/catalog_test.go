// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var (
	euWest1 = region.Key{Provider: "loodse", Name: "eu-west-1"}
	usEast1 = region.Key{Provider: "loodse", Name: "us-east-1"}
	another = region.Key{Provider: "not-loodse", Name: "eu-west-1"}
)

func serve(t testing.TB, ring *regiontest.Ring) {
	t.Helper()
	require.NoError(t, ring.Serve("eu-west", euWest1, another))
	require.NoError(t, ring.Serve("us-east", usEast1))
}

// published returns the names of the Regions in a namespace.
func published(t testing.TB, api region.API, namespace string) []string {
	t.Helper()
	found, err := api.Dynamic().Resource(regionsResource).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var names []string
	for _, obj := range found.Items {
		names = append(names, obj.GetName())
	}
	return names
}

func TestCatalogPublishesToTenants(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		serve(t, ring)
		for _, account := range []*unstructured.Unstructured{newAccount("acme", []any{"Tenant"}), newAccount("loodse", []any{"Provider"})} {
			_, err := c.Add(t.Context(), account, fanout.AddOptions{})
			require.NoError(t, err)
		}
		eu := connTo(t, ring, "eu-west")
		catalog, err := NewCatalog(eu, ring, CatalogOptions{Describe: func(k region.Key) v1alpha1.RegionMetadata {
			return v1alpha1.RegionMetadata{DisplayName: "Region " + k.Name}
		}})
		require.NoError(t, err)
		run(t, catalog.Start)
		all := []string{"eu-west-1.loodse", "eu-west-1.not-loodse", "us-east-1.loodse"}
		eventually(t, func() bool { return slices.Equal(all, published(t, eu, "acme")) })
		require.Empty(t, published(t, eu, "loodse"), "a provider is no tenant")
		eventually(t, func() bool {
			obj := get(t, eu, regionsResource, "acme", "eu-west-1.loodse")
			phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
			return phase == string(v1alpha1.RegionReady)
		})
		obj := get(t, eu, regionsResource, "acme", "eu-west-1.loodse")
		require.Equal(t, map[string]any{"provider": map[string]any{"name": "loodse"}, "metadata": map[string]any{"displayName": "Region eu-west-1"}}, obj.Object["spec"])
		text, err := json.Marshal(get(t, eu, regionsResource, "acme", "us-east-1.loodse"))
		require.NoError(t, err)
		for _, peer := range peerNames {
			require.NotContains(t, string(text), string(peer)+"\"", "tenants do not see peers")
		}
		quiet(t, ring.Server("eu-west"))

		// The Region of a region without a peer is deleted; a Region that is deleted or edited
		// comes back.
		require.NoError(t, ring.Serve("us-east"))
		eventually(t, func() bool { return slices.Equal(all[:2], published(t, eu, "acme")) })
		deleteIn(t, eu, regionsResource, "acme", all[0])
		eventually(t, func() bool { return slices.Equal(all[:2], published(t, eu, "acme")) })
		eventually(t, func() bool {
			obj := get(t, eu, regionsResource, "acme", all[1])
			obj.Object["spec"] = map[string]any{"provider": map[string]any{"name": "mallory"}}
			_, err := eu.Dynamic().Resource(regionsResource).Namespace("acme").Update(t.Context(), obj, metav1.UpdateOptions{})
			return err == nil
		})
		eventually(t, func() bool {
			provider, _, _ := unstructured.NestedString(get(t, eu, regionsResource, "acme", all[1]).Object, "spec", "provider", "name")
			return provider == "not-loodse"
		})

		// An Account that is no longer a tenant has no Regions.
		_, err = c.Update(t.Context(), newAccount("acme", []any{"Provider"}), fanout.AddOptions{})
		require.NoError(t, err)
		eventually(t, func() bool { return len(published(t, eu, "acme")) == 0 })
	})
}

func TestCatalogSelects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, c := newRing(t)
		serve(t, ring)
		gold := newAccount("gold", []any{"Tenant"})
		gold.SetLabels(map[string]string{"tier": "gold"})
		for _, account := range []*unstructured.Unstructured{gold, newAccount("tin", []any{"Tenant"})} {
			_, err := c.Add(t.Context(), account, fanout.AddOptions{})
			require.NoError(t, err)
		}
		eu := connTo(t, ring, "eu-west")
		// Another client's object with the name of a region is left alone.
		foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"provider": map[string]any{"name": "somebody"}}}}
		foreign.SetAPIVersion("catalog.kubecarrier.io/v1alpha1")
		foreign.SetKind("Region")
		foreign.SetName("us-east-1.loodse")
		foreign, err := eu.Dynamic().Resource(regionsResource).Namespace("gold").Create(t.Context(), foreign, metav1.CreateOptions{})
		require.NoError(t, err)
		catalog, err := NewCatalog(eu, ring, CatalogOptions{
			Tenants: labels.SelectorFromSet(labels.Set{"tier": "gold"}),
			May: func(tenant *v1alpha1.Account, k region.Key) bool {
				return tenant.Name == "gold" && k.Provider == "loodse"
			},
		})
		require.NoError(t, err)
		run(t, catalog.Start)
		eventually(t, func() bool {
			return slices.Equal([]string{"eu-west-1.loodse", "us-east-1.loodse"}, published(t, eu, "gold"))
		})
		quiet(t, ring.Server("eu-west"))
		require.Empty(t, published(t, eu, "tin"))
		require.Equal(t, foreign.GetResourceVersion(), get(t, eu, regionsResource, "gold", "us-east-1.loodse").GetResourceVersion())
	})
}

func TestNewCatalogChecks(t *testing.T) {
	t.Parallel()
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	_, err := NewCatalog(nil, ring, CatalogOptions{})
	require.ErrorContains(t, err, "target is nil")
	_, err = NewCatalog(connTo(t, ring, "eu"), nil, CatalogOptions{})
	require.ErrorContains(t, err, "directory is nil")
}
