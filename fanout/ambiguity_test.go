// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/ambiguitytest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestAmbiguity disturbs each call of each operation in every way that leaves the result of the
// call unknown. The calls use HTTP/2 and TLS, through a proxy before each API server in memory.
// With -short it runs one case in five.
func TestAmbiguity(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 5
	}
	ambiguitytest.Run(t, true, every, func(t *testing.T) *ambiguitytest.Bench {
		t.Helper()
		r := newRing(t)
		kubeconfigs := map[region.PeerName][]byte{}
		for _, peer := range peers {
			kubeconfig, err := r.Server(peer).Listen(t.Context())
			require.NoError(t, err)
			kubeconfigs[peer] = kubeconfig
		}
		return ambiguitytest.NewBench(t, kubeconfigs, 30*time.Millisecond)
	})
}

// If the reply to a commit is lost with the connection, the operation is in doubt. Once the peer
// answers again, a recovery shows that the operation is committed.
func TestACommitWhoseReplyIsLostIsInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		log := waltest.NewMemory()
		c := coordinator(t, r, log, fanout.Options{LeaseTimeout: time.Minute})
		acme := addAccount(t, c)
		target := r.Server("us-east")
		target.Inject(regiontest.Fault{
			Verb: "update", Resource: serviceClusterResource.GroupResource(),
			Do: regiontest.CrashAfter(func() { target.Partition(true) }),
		})
		op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		_, inDoubt := errors.AsType[*fanout.InDoubtError](err)
		require.True(t, inDoubt, "%v", err)
		require.NotErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, fanout.InDoubt, op.State)

		target.Partition(false)
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		requireSettled(t, log)
		require.True(t, present(held(t, r, key(acme, "db"))))
		requireClean(t, c)
	})
}
