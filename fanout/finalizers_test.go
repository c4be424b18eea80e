// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// waiting returns the finalizers for which an operation waits, by peer.
func waiting(op *fanout.Operation) map[region.PeerName][]string {
	found := map[region.PeerName][]string{}
	for o := range op.Peers.All() {
		if held, ok := errors.AsType[*fanout.FinalizerError](o.Err); ok {
			found[o.Peer] = held.Finalizers
		}
	}
	return found
}

// A removal that waits for finalizers of other controllers reports these finalizers for each peer:
// in its steps, in its result, and in the result of a recovery.
func TestARemovalNamesTheFinalizersThatItWaitsFor(t *testing.T) {
	const teardown = "example.com/teardown"
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		var mu sync.Mutex
		shown := map[region.PeerName]bool{}
		progress := fanout.NewProgress(nil)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second, Observer: &fanout.Observer{
			Step: func(ctx context.Context, e fanout.StepEvent) {
				progress.Step(ctx, e)
				mu.Lock()
				defer mu.Unlock()
				for _, p := range progress.Peers() {
					shown[p.Peer] = shown[p.Peer] || len(p.Finalizers) > 0
				}
			},
			End: progress.End,
		}})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		release := hold(t, clusters(t, r, "us-east", acme), "db")
		guard := hold(t, clusters(t, r, "eu-west", acme), "db")
		remove := func() *fanout.Operation {
			op, err := c.Remove(within(t, 3*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
			require.NoError(t, err)
			return op
		}
		op := remove()
		require.Equal(t, fanout.Committed, op.State)
		require.Equal(t, map[region.PeerName][]string{"us-east": {teardown}}, waiting(op))
		require.Regexp(t, `peer us-east: remove: ServiceCluster `+acme+`/db is being deleted since .* and waits for finalizer example\.com/teardown: the controller that set it must remove it$`, op.Peers.Err().Error())
		require.True(t, shown["us-east"])
		require.False(t, shown["ap-south"])
		for o := range op.Peers.All() {
			if o.Peer != "us-east" {
				require.Equal(t, fanout.PeerGuard, o.Value, "the guards go after the finalizers of others")
			}
		}
		ops, err := c.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, ops, 1)
		require.Equal(t, map[region.PeerName][]string{"us-east": {teardown}}, waiting(ops[0]))

		release()
		_, err = c.Recover(within(t, time.Second))
		require.NoError(t, err)
		guard()
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		requireClean(t, c)
	})
}

// A removal reads finalizers that block a deletion, and the caller's deadline then cuts off a later
// read. The result of the removal still names these finalizers.
func TestADeadlineDoesNotHideFinalizers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		freeze := sync.OnceFunc(func() {
			r.Server("us-east").Inject(regiontest.Fault{Verb: "get", Times: -1, Do: regiontest.Hang()})
		})
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second, Observer: &fanout.Observer{
			Step: func(_ context.Context, e fanout.StepEvent) {
				if len(e.Finalizers) > 0 {
					freeze()
				}
			},
		}})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		release := hold(t, clusters(t, r, "us-east", acme), "db")
		op, err := c.Remove(within(t, 3*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Committed, op.State)
		require.Equal(t, map[region.PeerName][]string{"us-east": {"example.com/teardown"}}, waiting(op), "%v", op.Peers.Err())
		r.Server("us-east").Reset()
		release()
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		requireClean(t, c)
	})
}

// The removal of an object that exists everywhere reports the finalizers that block the deletion of
// its replicas. It deletes the primary only after the replicas, and so reports no finalizer of the
// primary.
func TestARemovalNamesTheFinalizersOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second})
		name := unique("acme")
		_, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		var releases []func()
		for _, p := range peers {
			conn, err := r.Conn(p)
			require.NoError(t, err)
			releases = append(releases, hold(t, conn.Dynamic().Resource(accountResource), name))
		}
		op, err := c.Remove(within(t, 3*time.Second), accounts, key("", name), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Committed, op.State)
		require.Len(t, waiting(op), 2, "%v", op.Peers.Err())
		require.Nil(t, waiting(op)["us-east"], "the primary is deleted last")
		for _, release := range releases {
			release()
		}
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		requireClean(t, c)
	})
}
