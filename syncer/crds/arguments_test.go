// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// If an argument is missing, New, NewFleet and Sync return an error that names it. The methods of a zero Controller or
// Fleet return an error that names its constructor.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	none := func() []crds.Target { return nil }
	clusters, err := targets.New(api, targets.Options{})
	require.NoError(t, err)
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New Upstream", "Upstream is nil", func() error { _, err := crds.New(crds.Options{Targets: none}); return err }},
		{"New Upstream typed", "Upstream is nil", func() error { _, err := crds.New(crds.Options{Upstream: nilConn, Targets: none}); return err }},
		{"New Targets", "Targets is nil", func() error { _, err := crds.New(crds.Options{Upstream: api}); return err }},
		{"NewFleet up", "up is nil", func() error { _, err := crds.NewFleet(nil, clusters, crds.Options{}); return err }},
		{"NewFleet up typed", "up is nil", func() error { _, err := crds.NewFleet(nilConn, clusters, crds.Options{}); return err }},
		{"NewFleet targets", "targets is nil", func() error { _, err := crds.NewFleet(api, nil, crds.Options{}); return err }},
		{"Sync API of a target", "targets[0].API", func() error {
			c, err := crds.New(crds.Options{Upstream: api, Targets: func() []crds.Target { return []crds.Target{{Name: "a", API: nilConn}} }})
			require.NoError(t, err)
			_, err = c.Sync(t.Context())
			return err
		}},
		{"zero Controller Sync", "not made by New", func() error { _, err := new(crds.Controller).Sync(t.Context()); return err }},
		{"zero Controller Start", "not made by New", func() error { return new(crds.Controller).Start(t.Context()) }},
		{"zero Fleet", "not made by NewFleet", func() error { return new(crds.Fleet).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
