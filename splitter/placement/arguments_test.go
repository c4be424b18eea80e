// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// If an argument is missing, the error names that argument.
func TestArguments(t *testing.T) {
	api, err := atollregion.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *atollregion.Conn
	clusters := splitter.StaticClusters("a")
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New up", "up is nil", func() error { _, err := placement.New(nil, clusters, placement.Options{}); return err }},
		{"New up typed", "up is nil", func() error { _, err := placement.New(nilConn, clusters, placement.Options{}); return err }},
		{"New clusters", "clusters is nil", func() error { _, err := placement.New(api, nil, placement.Options{}); return err }},
		{"New SyncTargets", "clusters is nil", func() error { _, err := placement.New(api, splitter.SyncTargets(nil), placement.Options{}); return err }},
		{"Place", "parent is nil", func() error { _, _, err := placement.Place(nil, nil); return err }},
		{"zero Controller", "not made by New", func() error { return new(placement.Controller).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
