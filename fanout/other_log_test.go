// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A log of another ring is refused and left unchanged: its open operation is absent in this ring,
// but that does not mean that it was undone. In its own ring the operation is settled.
func TestALogOfAnotherRingIsRefused(t *testing.T) {
	for _, ids := range []bool{true, false} {
		own, other := newRing(t), newRing(t)
		if !ids {
			forgetRing(t, own)
			forgetRing(t, other)
		}
		log := waltest.NewMemory()
		c := coordinator(t, own, log, fanout.Options{})
		acme := addAccount(t, c)
		require.NoError(t, c.Wait(t.Context()))
		ctx, stop := withCancel(t)
		own.Server("eu-west").Inject(regiontest.Fault{Verb: "update", Do: regiontest.CrashAfter(func() {
			own.Server("eu-west").Partition(true) // the commit is applied, and its answer is lost
			stop()
		})})
		_, err := coordinator(t, own, log, fanout.Options{Cleanup: 50 * time.Millisecond}).Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
		require.Error(t, err)
		own.Server("eu-west").Partition(false)
		open := openIDs(t, log)
		require.NotEmpty(t, open)

		abroad := coordinator(t, other, log, fanout.Options{})
		for _, p := range peers {
			other.Server(p).Reset()
		}
		_, err = abroad.Recover(t.Context())
		require.ErrorIs(t, err, fanout.ErrOtherLog)
		_, err = abroad.Outcome(t.Context(), open[0])
		require.ErrorIs(t, err, fanout.ErrOtherLog)
		_, err = abroad.Add(t.Context(), newAccount(unique("beta")), fanout.AddOptions{})
		require.ErrorIs(t, err, fanout.ErrOtherLog)
		require.ErrorIs(t, err, fanout.ErrAborted)
		_, err = abroad.Leave(t.Context(), "us-east")
		require.ErrorIs(t, err, fanout.ErrOtherLog)
		require.Zero(t, writes(other))
		require.Equal(t, open, openIDs(t, log))

		own.Server("eu-west").Reset()
		again := coordinator(t, own, log, fanout.Options{})
		settled, err := again.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, settled, 1)
		require.Equal(t, open[0], settled[0].ID)
	}
}

func openIDs(t *testing.T, log *waltest.Memory) (ids []string) {
	t.Helper()
	for e, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	return ids
}
