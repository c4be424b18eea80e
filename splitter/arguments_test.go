// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
)

// If an argument is missing, the error names that argument.
func TestArguments(t *testing.T) {
	api, err := region.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	clusters := splitter.StaticClusters("a")
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New up", "up is nil", func() error { _, err := splitter.New(nil, clusters, splitter.Options{}); return err }},
		{"New up typed", "up is nil", func() error { _, err := splitter.New(nilConn, clusters, splitter.Options{}); return err }},
		{"New clusters", "clusters is nil", func() error { _, err := splitter.New(api, nil, splitter.Options{}); return err }},
		{"New SyncTargets", "clusters is nil", func() error { _, err := splitter.New(api, splitter.SyncTargets(nil), splitter.Options{}); return err }},
		{"New SyncTargets typed", "clusters is nil", func() error {
			_, err := splitter.New(api, splitter.SyncTargets(nilConn), splitter.Options{})
			return err
		}},
		{"New Kinds", "Kinds[0] is nil", func() error {
			_, err := splitter.New(api, clusters, splitter.Options{Kinds: []splitter.Kind{nil}})
			return err
		}},
		{"ByPaths", "resource", func() error { _, err := splitter.ByPaths(schema.GroupVersionResource{}, splitter.Paths{}); return err }},
		{"Plan", "parent is nil", func() error {
			s, err := splitter.New(api, clusters, splitter.Options{})
			require.NoError(t, err)
			_, err = s.Plan(t.Context(), nil)
			return err
		}},
		{"Everywhere", "parent is nil", func() error { _, _, err := splitter.Everywhere(nil, nil); return err }},
		{"zero Splitter", "not made by New", func() error { return new(splitter.Splitter).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
