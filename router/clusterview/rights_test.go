// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// A right that was granted is believed for 10 seconds, for this caller, SyncTarget and region only.
func TestRightsAreBelievedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRights()
		g := grant{"alice", address{"c1", eu}}
		require.False(t, r.granted(g))
		r.grant(g)
		require.True(t, r.granted(g))
		for _, other := range []grant{{"bob", g.address}, {"alice", address{"c2", eu}}, {"alice", address{target: "c1"}}} {
			require.False(t, r.granted(other))
		}
		time.Sleep(believed - time.Nanosecond)
		require.True(t, r.granted(g))
		time.Sleep(time.Nanosecond)
		require.False(t, r.granted(g))
		r.grant(grant{"bob", g.address})
		require.Len(t, r.until, 1, "grants that have ended take no memory")
	})
}

// The region is asked once for many requests.
func TestRightsAreNotAskedForEachRequest(t *testing.T) {
	s := newScene(t, Options{})
	asked := 0
	count := func(r regiontest.Request) {
		if r.Resource == "selfsubjectaccessreviews" {
			asked++
		}
	}
	s.reached.Store(&count)
	for range 3 {
		_, err := s.syncer().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	}
	require.Equal(t, 1, asked)
}
