// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Each call gets a missing or invalid argument, or a receiver that no constructor made. The call does not panic, and
// its error names the fault.
func TestArguments(t *testing.T) {
	var nilRing *region.Ring
	r, err := router.New(region.Fixed(), router.Options{})
	require.NoError(t, err)
	k := region.Key{Provider: "a", Name: "b"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New", "directory is nil", func() error { _, err := router.New(nil, router.Options{}); return err }},
		{"New typed", "directory is nil", func() error { _, err := router.New(nilRing, router.Options{}); return err }},
		{"New Cache typed", "Cache is a nil", func() error {
			_, err := router.New(region.Fixed(), router.Options{Cache: (*router.FileCache)(nil)})
			return err
		}},
		{"New Resolver typed", "Resolver is a nil", func() error {
			_, err := router.New(region.Fixed(), router.Options{Resolver: router.ResolverFunc(nil)})
			return err
		}},
		{"OpenCache", "path is empty", func() error { _, err := router.OpenCache(""); return err }},
		{"Save of a zero FileCache", "not made by OpenCache", func() error { return new(router.FileCache).Save(nil) }},
		{"Client region", "region", func() error { _, err := r.Client(region.Key{}, router.Self()); return err }},
		{"Client identity", "none is given", func() error { _, err := r.Client(k, router.Identity{}); return err }},
		{"Client token", "token is empty", func() error { _, err := r.Client(k, router.Caller("")); return err }},
		{"Client user", "user to impersonate is empty", func() error { _, err := r.Client(k, router.Impersonate(router.User{})); return err }},
		{"Lookup", "region", func() error { _, err := r.Lookup(t.Context(), region.Key{}); return err }},
		{"Refresh", "region", func() error { _, err := r.Refresh(t.Context(), region.Key{}); return err }},
		{"zero Router Start", "not made by New", func() error { return new(router.Router).Start(t.Context()) }},
		{"zero Router Client", "not made by New", func() error { _, err := new(router.Router).Client(k, router.Self()); return err }},
		{"zero Router Lookup", "not made by New", func() error { _, err := new(router.Router).Lookup(t.Context(), k); return err }},
		{"zero Router Refresh", "not made by New", func() error { _, err := new(router.Router).Refresh(t.Context(), k); return err }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
