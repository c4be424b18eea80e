// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/wholetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func newServers(tb testing.TB) wholetest.Servers {
	tb.Helper()
	var apis []region.API
	for _, name := range []string{"upstream", "cluster-1", "cluster-2"} {
		server := regiontest.NewServer(regiontest.Options{Name: name, History: 100000})
		tb.Cleanup(server.Close)
		api, err := region.APIFor(server.Config())
		require.NoError(tb, err)
		apis = append(apis, api)
	}
	return wholetest.Servers{Up: apis[0], Clusters: [2]region.API{apis[1], apis[2]}}
}

// Divided, Bare and Requests each write five parents with their shards upstream, and the downstream
// objects of the shards in the two clusters.
func TestServers(t *testing.T) {
	s := newServers(t)
	for name, run := range map[string]func(testing.TB, string, int) wholetest.Cost{"divided": s.Divided, "bare": s.Bare, "requests": s.Requests} {
		inAll(t, s, name)
		require.Positive(t, run(t, name, 5).Wall)
		up, one, other := list(t, s.Up, name), list(t, s.Clusters[0], name), list(t, s.Clusters[1], name)
		require.Len(t, up, 15)
		require.Len(t, one, 5)
		require.Len(t, other, 5)
		for i := range 5 {
			parent := fmt.Sprintf("d-%05d", i)
			require.Equal(t, int64(15), up[parent])
			require.Equal(t, int64(15), one[parent+"--cluster-1"]+other[parent+"--cluster-2"])
			require.Equal(t, one[parent+"--cluster-1"], up[parent+"--cluster-1"])
		}
	}
}

// BenchmarkWhole divides 300 Deployments of 15 replicas over two clusters, and measures from the
// first create until all 600 shards are downstream. The baseline of "ratio" is a bare loop of 16
// workers that creates the same parents, shards and downstream objects in their final form. The
// baseline of "requests-ratio" makes the same requests as splitter and syncers. The servers are in
// the memory of this process.
func BenchmarkWhole(b *testing.B) {
	wholetest.Compare(b, 300, func() (wholetest.Servers, string) {
		s := newServers(b)
		return s, inAll(b, s, "whole")
	})
}
