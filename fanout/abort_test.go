// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestAbortShowsNoOtherOperation calls Abort for operations whose name another object holds. The
// result shows nothing of this object: it names no primary, and the peers are PeerUnchanged or
// PeerGone.
func TestAbortShowsNoOtherOperation(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "me/1"})
	acme := addAccount(t, c)
	unchanged := map[region.PeerName]fanout.PeerState{
		"ap-south": fanout.PeerUnchanged, "eu-west": fanout.PeerUnchanged, "us-east": fanout.PeerUnchanged,
	}
	first, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	refused, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	require.Error(t, err)
	op, err := c.Abort(t.Context(), refused.ID, fanout.AbortOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Aborted, op.State)
	require.Empty(t, op.Primary)
	require.Equal(t, unchanged, states(op.Peers))

	// The result is the same while the holder's peer does not answer, because the log has the end of
	// the operation.
	r.Partition("us-east", true)
	op, err = c.Abort(t.Context(), refused.ID, fanout.AbortOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Aborted, op.State)
	require.Empty(t, op.Primary)
	r.Partition("us-east", false)

	// The object of the first add was removed, and another operation has its name now.
	require.NoError(t, c.Wait(t.Context()))
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)
	op, err = c.Abort(t.Context(), first.ID, fanout.AbortOptions{})
	require.ErrorIs(t, err, fanout.ErrCommitted)
	require.Empty(t, op.Primary)
	require.Equal(t, map[region.PeerName]fanout.PeerState{
		"ap-south": fanout.PeerGone, "eu-west": fanout.PeerGone, "us-east": fanout.PeerGone,
	}, states(op.Peers))

	// An object that a person applied belongs to no operation.
	_, err = clusters(t, r, "us-east", acme).Create(t.Context(), newServiceCluster(acme, "applied"), metav1.CreateOptions{})
	require.NoError(t, err)
	refused, err = c.Add(t.Context(), newServiceCluster(acme, "applied"), fanout.AddOptions{Target: "eu-west"})
	require.Error(t, err)
	op, err = c.Abort(t.Context(), refused.ID, fanout.AbortOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.PeerUnchanged, states(op.Peers)["us-east"])
}

// An add has returned, and its guards are not bound yet. Abort of this add returns ErrCommitted,
// even if the added object has been removed meanwhile.
func TestAbortWhileGuardsAreBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		hold := pauseAt("put")
		hold.role = "secondary"
		defer hold.release()
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: hold.observer()})
		other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, other)
		op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		<-hold.reached
		_, err = other.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		aborted := make(chan error, 1)
		go func() {
			_, err := c.Abort(context.WithoutCancel(t.Context()), op.ID, fanout.AbortOptions{})
			aborted <- err
		}()
		synctest.Wait()
		hold.release()
		require.ErrorIs(t, <-aborted, fanout.ErrCommitted)
	})
}
