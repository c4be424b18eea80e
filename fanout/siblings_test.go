// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestARefusalCancelsNoSibling lets the nearest peer reject a request while the requests to the
// other peers are in flight. The operation waits for the answers of these peers: a cancelled
// request would have an unknown effect. docs/evidence/mutants.md lists this test under N21.
func TestARefusalCancelsNoSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		log := waltest.NewMemory()
		c := coordinator(t, r, log, fanout.Options{Kinds: protocolOnly(), LeaseTimeout: time.Minute})
		warm(t, c, acme)
		conn, err := r.Conn("eu-west")
		require.NoError(t, err)
		_, err = conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Create(t.Context(), newServiceCluster(acme, "db"), metav1.CreateOptions{})
		require.NoError(t, err)
		farAway(r)

		_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.ErrorAs(t, err, new(*fanout.HeldError))
		created := false
		for _, request := range r.Server("ap-south").Requests() {
			require.NoError(t, request.Err, "%s %s", request.Method, request.Path)
			created = created || request.Verb == "create" && request.Resource == serviceClusterResource.Resource && request.Code == 201
		}
		require.True(t, created, "the far peer was asked at the same time")
		requireSettled(t, log)
		requireClean(t, c)
	})
}
