// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A coordinator that lost its log finds its operations in the peers, and does not change the
// operations of other coordinators.
func TestRescue(t *testing.T) {
	r := newRing(t)
	mine := fanout.Options{Identity: "me/1"}
	c := coordinator(t, r, waltest.NewMemory(), mine)
	acme := addAccount(t, c)
	reserved := reserve(t, r, acme, "reserved", "us-east", "me/1")
	theirs := reserve(t, r, acme, "theirs", "us-east", "stranger/1")

	_, err := c.Add(t.Context(), newServiceCluster(acme, "going"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	release := hold(t, clusters(t, r, "eu-west", acme), "going")
	removal := removeHeld(t, r, acme, "going", "me/1")

	r.Partition("ap-south", true)
	op, err := c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
	require.ErrorIs(t, err, fanout.ErrAborted, "its primary is there")
	require.Equal(t, fanout.Aborted, op.State)
	r.Partition("ap-south", false)
	r.Partition("us-east", true)
	update, err := c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, update.State)

	// The log is lost, and a peer does not answer.
	lost := coordinator(t, r, waltest.NewMemory(), mine)
	report, err := lost.Rescue(t.Context(), fanout.RescueOptions{})
	require.NoError(t, err)
	require.False(t, report.Complete())
	require.ErrorIs(t, members(report.Unread.Err())[0], region.ErrUnavailable)
	require.Len(t, report.Clusters, 2)

	r.Partition("us-east", false)
	report, err = lost.Rescue(t.Context(), fanout.RescueOptions{})
	require.NoError(t, err)
	require.False(t, report.Complete(), "a finalizer holds the removal")
	require.Len(t, report.Clusters, 3)
	require.Equal(t, "me/1", report.By)
	require.False(t, report.To.Before(report.From))
	did := map[string]string{}
	for _, o := range report.Operations {
		did[o.Operation] = o.Did
		require.Equal(t, o.Operation == removal.ID, o.Left, "%s: %v", o.Did, o.Err)
	}
	require.Equal(t, map[string]string{
		reserved:   "deleted its reservation in us-east, and its objects in other peers",
		removal.ID: "resumed the removal in eu-west: it is not finished",
		update.ID:  "brought it to every peer, from ap-south",
	}, did)

	release()
	report, err = lost.Rescue(t.Context(), fanout.RescueOptions{Identity: "me/*"})
	require.NoError(t, err)
	require.True(t, report.Complete())
	require.Len(t, report.Operations, 1)
	_, err = clusters(t, r, "us-east", acme).Get(t.Context(), "theirs", metav1.GetOptions{})
	require.NoError(t, err, "the stranger's is left")

	report, err = lost.Rescue(t.Context(), fanout.RescueOptions{Identity: "stranger/1"})
	require.NoError(t, err)
	require.True(t, report.Complete())
	require.Equal(t, theirs, report.Operations[0].Operation)
	requireClean(t, c)
	report, err = lost.Rescue(t.Context(), fanout.RescueOptions{Identity: "*"})
	require.NoError(t, err)
	require.True(t, report.Complete())
	require.Empty(t, report.Operations)
}

func members(err error) []error {
	partial, ok := err.(interface{ WrappedErrors() []error })
	if !ok {
		return []error{err}
	}
	return partial.WrappedErrors()
}

// A reservation that is alive stays, and the report lists it.
func TestRescueLeavesTheLiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		r.Partition("ap-south", true)
		ctx, cancel := withCancel(t)
		alive := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "me/1", LeaseTimeout: 200 * time.Millisecond, CallTimeout: time.Second})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := alive.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
			require.ErrorIs(t, err, fanout.ErrAborted)
		})
		defer wg.Wait()
		defer cancel()
		c := coordinator(t, some(t, r, "eu-west", "us-east"), waltest.NewMemory(), fanout.Options{LeaseTimeout: time.Second, CallTimeout: 500 * time.Millisecond})
		require.Eventually(t, func() bool {
			traces, err := c.Traces(context.WithoutCancel(t.Context()))
			return err == nil && slices.ContainsFunc(traces, func(tr fanout.Trace) bool { return tr.State == fanout.Reserving })
		}, time.Minute, 10*time.Millisecond)
		report, err := c.Rescue(t.Context(), fanout.RescueOptions{Identity: "me/1"})
		require.NoError(t, err)
		require.False(t, report.Complete())
		at := slices.IndexFunc(report.Operations, func(o fanout.Rescued) bool { return o.State == fanout.Reserving })
		require.GreaterOrEqual(t, at, 0)
		require.True(t, report.Operations[at].Left)
		require.Contains(t, report.Operations[at].Did, "alive")
	})
}
