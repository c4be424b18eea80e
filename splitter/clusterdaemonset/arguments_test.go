// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
)

// If an argument is missing, the error names that argument.
func TestArguments(t *testing.T) {
	api, err := atollregion.APIFor(&rest.Config{Host: "https://plane.invalid"})
	require.NoError(t, err)
	var nilConn *atollregion.Conn
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New up", "up is nil", func() error {
			_, err := clusterdaemonset.New(nil, splitter.StaticClusters("a"), clusterdaemonset.Options{})
			return err
		}},
		{"New up typed", "up is nil", func() error {
			_, err := clusterdaemonset.New(nilConn, splitter.StaticClusters("a"), clusterdaemonset.Options{})
			return err
		}},
		{"New clusters", "clusters is nil", func() error { _, err := clusterdaemonset.New(api, nil, clusterdaemonset.Options{}); return err }},
		{"New SyncTargets", "clusters is nil", func() error {
			_, err := clusterdaemonset.New(api, splitter.SyncTargets(nil), clusterdaemonset.Options{})
			return err
		}},
		{"zero Controller", "not made by New", func() error { return new(clusterdaemonset.Controller).Start(t.Context()) }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
