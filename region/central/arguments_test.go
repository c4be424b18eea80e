// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
)

// If an argument is missing, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	var nilRing *region.Ring
	run := func(context.Context) error { return nil }
	source, err := central.New(api, central.Options{})
	require.NoError(t, err)
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New", "plane is nil", func() error { _, err := central.New(nil, central.Options{}); return err }},
		{"New typed", "plane is nil", func() error { _, err := central.New(nilConn, central.Options{}); return err }},
		{"NewPeers source", "source is nil", func() error { _, err := central.NewPeers(nil, region.Fixed(), central.PeersOptions{}); return err }},
		{"NewPeers zero source", "source is not made by New", func() error {
			_, err := central.NewPeers(new(central.Source), region.Fixed(), central.PeersOptions{})
			return err
		}},
		{"NewPeers ring", "ring is nil", func() error { _, err := central.NewPeers(source, nil, central.PeersOptions{}); return err }},
		{"NewPeers ring typed", "ring is nil", func() error { _, err := central.NewPeers(source, nilRing, central.PeersOptions{}); return err }},
		{"NewMaster plane", "plane is nil", func() error { _, err := central.NewMaster(nil, run, central.MasterOptions{}); return err }},
		{"NewMaster plane typed", "plane is nil", func() error { _, err := central.NewMaster(nilConn, run, central.MasterOptions{}); return err }},
		{"NewMaster run", "run is nil", func() error { _, err := central.NewMaster(api, nil, central.MasterOptions{}); return err }},
		{"NewResolver", "plane is nil", func() error { _, err := central.NewResolver(nil); return err }},
		{"NewResolver typed", "plane is nil", func() error { _, err := central.NewResolver(nilConn); return err }},
		{"zero Resolver", "not made by NewResolver", func() error {
			_, err := new(central.Resolver).Resolve(t.Context(), region.Key{Provider: "a", Name: "b"})
			return err
		}},
		{"Run", "publish is nil", func() error { return source.Run(t.Context(), nil) }},
		{"zero Source", "not made by New", func() error { return new(central.Source).Run(t.Context(), func(*region.Snapshot) {}) }},
		{"zero Peers", "not made by NewPeers", func() error { return new(central.Peers).Start(t.Context()) }},
		{"zero Master", "not made by NewMaster", func() error { return new(central.Master).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
