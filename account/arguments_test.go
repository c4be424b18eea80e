// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// If an argument is missing or invalid, the function does not panic, and its error names the
// argument.
func TestArguments(t *testing.T) {
	var nilRing *region.Ring
	var nilConn *region.Conn
	ctx, d := t.Context(), region.Fixed()
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	resources := []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"NewController", "directory is nil", func() error { _, err := account.NewController(nil, account.ControllerOptions{}); return err }},
		{"NewController nil Ring", "directory is nil", func() error { _, err := account.NewController(nilRing, account.ControllerOptions{}); return err }},
		{"NewReplicator plane", "plane is nil", func() error {
			_, err := account.NewReplicator(nil, d, new(fanout.Coordinator), account.Options{})
			return err
		}},
		{"NewReplicator nil Conn", "plane is nil", func() error {
			_, err := account.NewReplicator(nilConn, d, new(fanout.Coordinator), account.Options{})
			return err
		}},
		{"NewReplicator Directory", "directory is nil", func() error {
			_, err := account.NewReplicator(api, nil, new(fanout.Coordinator), account.Options{})
			return err
		}},
		{"NewReplicator nil Ring", "directory is nil", func() error {
			_, err := account.NewReplicator(api, nilRing, new(fanout.Coordinator), account.Options{})
			return err
		}},
		{"NewReplicator Coordinator", "coordinator is nil", func() error { _, err := account.NewReplicator(api, d, nil, account.Options{}); return err }},
		{"NewCatalog target", "target is nil", func() error { _, err := account.NewCatalog(nil, d, account.CatalogOptions{}); return err }},
		{"NewCatalog nil Conn", "target is nil", func() error { _, err := account.NewCatalog(nilConn, d, account.CatalogOptions{}); return err }},
		{"NewCatalog Directory", "directory is nil", func() error { _, err := account.NewCatalog(api, nil, account.CatalogOptions{}); return err }},
		{"NewCatalog nil Ring", "directory is nil", func() error { _, err := account.NewCatalog(api, nilRing, account.CatalogOptions{}); return err }},
		{"Gather", "directory is nil", func() error { _, err := account.Gather(ctx, nil, resources, account.GatherOptions{}); return err }},
		{"Gather nil Ring", "directory is nil", func() error { _, err := account.Gather(ctx, nilRing, resources, account.GatherOptions{}); return err }},
		{"Gather resource", "resources[0]", func() error {
			_, err := account.Gather(ctx, d, make([]schema.GroupVersionResource, 1), account.GatherOptions{})
			return err
		}},
		{"Compare", "directory is nil", func() error {
			_, err := account.Compare(ctx, nil, account.Kind(), types.NamespacedName{Name: "a"})
			return err
		}},
		{"Compare nil Ring", "directory is nil", func() error {
			_, err := account.Compare(ctx, nilRing, account.Kind(), types.NamespacedName{Name: "a"})
			return err
		}},
		{"Compare kind", "kind", func() error {
			_, err := account.Compare(ctx, d, fanout.Kind{}, types.NamespacedName{Name: "a"})
			return err
		}},
		{"Compare name", "name", func() error { _, err := account.Compare(ctx, d, account.Kind(), types.NamespacedName{}); return err }},
		{"ReportConditions", "object is nil", func() error { _, err := account.ReportConditions(nil, account.Presence{}); return err }},
		{"ValidateName", "name", func() error { return account.ValidateName("") }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
