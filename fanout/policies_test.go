// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// moment selects the step of an operation at which a peer becomes unreachable.
type moment func(fanout.StepEvent) bool

// beforeCommit selects the moment before the commit is sent.
func beforeCommit(e fanout.StepEvent) bool {
	return !e.Done && e.Verb == "put" && e.Stage == "Configured"
}

// beforeMembers selects the moment before the PeerSet of ap-south is read.
func beforeMembers(e fanout.StepEvent) bool {
	return !e.Done && e.Verb == "read-peerset" && e.Peer == "ap-south"
}

func after(verb string, peer region.PeerName) moment {
	return func(e fanout.StepEvent) bool { return e.Done && e.Verb == verb && e.Peer == peer && e.Err == nil }
}

func always(e fanout.StepEvent) bool { return e.Verb == "begin" }

// silence makes peer unreachable at the moment that the parameter when selects. If back is not
// zero, the peer is reachable again after that duration. If back is zero, the peer stays
// unreachable, and silence calls tired once two conditions hold: calls to peer have failed more
// often than in an operation without Wait, and objects have been activated at least as often as
// the parameter others demands.
func silence(t *testing.T, r *regiontest.Ring, peer region.PeerName, when moment, back time.Duration, others int, tired func()) *fanout.Observer {
	t.Helper()
	var (
		once            sync.Once
		wg              sync.WaitGroup
		mu              sync.Mutex
		refused, active int
	)
	t.Cleanup(wg.Wait)
	return &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		mu.Lock()
		if e.Done && e.Peer == peer && e.Err != nil {
			refused++
		}
		if e.Done && e.Verb == "activate" && e.Err == nil {
			active++
		}
		enough := back == 0 && refused > 5 && active >= others
		mu.Unlock()
		if enough {
			tired()
		}
		if !when(e) {
			return
		}
		once.Do(func() {
			r.Partition(peer, true)
			if back > 0 {
				wg.Go(func() {
					<-time.After(back)
					r.Partition(peer, false)
				})
			}
		})
	}}
}

// TestUnreachable makes a peer unreachable in a phase of an add, an update or a removal. The
// operation returns the result that its policy for unreachable peers demands. A recovery settles
// the operation after the peer is reachable again.
func TestUnreachable(t *testing.T) {
	const (
		soon  = 50 * time.Millisecond // less than a lease
		never = 0
	)
	r := newRing(t)
	plain := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, plain)
	addCluster := func(ctx context.Context, c *fanout.Coordinator, mode fanout.Unreachable) (*fanout.Operation, error) {
		return c.Add(ctx, newServiceCluster(acme, unique("db")), fanout.AddOptions{Target: "us-east", Unreachable: mode})
	}
	addTenant := func(ctx context.Context, c *fanout.Coordinator, mode fanout.Unreachable) (*fanout.Operation, error) {
		return c.Add(ctx, newAccount(unique("tenant")), fanout.AddOptions{Target: "us-east", Unreachable: mode})
	}
	updateTenant := func(ctx context.Context, c *fanout.Coordinator, mode fanout.Unreachable) (*fanout.Operation, error) {
		name := unique("tenant")
		_, err := plain.Add(ctx, newAccount(name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		return c.Update(ctx, newAccount(name, "Provider"), fanout.AddOptions{Unreachable: mode})
	}
	removeCluster := func(ctx context.Context, c *fanout.Coordinator, mode fanout.Unreachable) (*fanout.Operation, error) {
		name := unique("db")
		_, err := plain.Add(ctx, newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		return c.Remove(ctx, serviceClusters, key(acme, name), fanout.RemoveOptions{Unreachable: mode})
	}
	removeTenant := func(ctx context.Context, c *fanout.Coordinator, mode fanout.Unreachable) (*fanout.Operation, error) {
		name := unique("tenant")
		_, err := plain.Add(ctx, newAccount(name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		return c.Remove(ctx, accounts, key("", name), fanout.RemoveOptions{Unreachable: mode})
	}
	aborted := func(t *testing.T, op *fanout.Operation, err error) {
		t.Helper()
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.ErrorIs(t, err, region.ErrUnavailable, "it says why")
		require.Equal(t, fanout.Aborted, op.State)
	}
	late := func(t *testing.T, op *fanout.Operation, err error) {
		t.Helper()
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.Equal(t, fanout.Aborted, op.State)
	}
	done := func(t *testing.T, op *fanout.Operation, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
		require.NoError(t, op.Peers.Err())
	}
	forward := func(behind ...region.PeerName) func(*testing.T, *fanout.Operation, error) {
		return func(t *testing.T, op *fanout.Operation, err error) {
			t.Helper()
			require.NoError(t, err)
			require.Equal(t, fanout.Committed, op.State)
			require.Equal(t, behind, pendingPeers(op))
		}
	}
	inDoubt := func(t *testing.T, op *fanout.Operation, err error) {
		t.Helper()
		doubt, ok := errors.AsType[*fanout.InDoubtError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, []region.PeerName{"us-east"}, doubt.Peers)
		require.Equal(t, fanout.InDoubt, op.State)
	}
	for _, tc := range []struct {
		name   string
		run    func(context.Context, *fanout.Coordinator, fanout.Unreachable) (*fanout.Operation, error)
		mode   fanout.Unreachable
		silent region.PeerName
		when   moment
		back   time.Duration
		want   func(*testing.T, *fanout.Operation, error)
		others int // activations that must succeed before the caller stops waiting
	}{
		{"add/reserving/fail", addCluster, fanout.Fail, "us-east", always, never, aborted, 0},
		{"add/reserving/wait, it comes back", addCluster, fanout.Wait, "us-east", always, soon, done, 0},
		{"add/reserving/wait, it does not", addCluster, fanout.Wait, "us-east", always, never, late, 0},
		{"add/claiming/fail", addCluster, fanout.Fail, "ap-south", always, never, aborted, 0},
		{"add/claiming/wait, it comes back", addCluster, fanout.Wait, "ap-south", always, soon, done, 0},
		{"add/claiming/wait, it does not", addCluster, fanout.Wait, "ap-south", always, never, late, 0},
		{"add/members/fail", addCluster, fanout.Fail, "ap-south", beforeMembers, never, aborted, 0},
		{"add/commit/fail, it comes back", addCluster, fanout.Fail, "us-east", beforeCommit, soon, done, 0},
		{"add/commit/wait, it comes back", addCluster, fanout.Wait, "us-east", beforeCommit, soon, done, 0},
		{"add/after the commit/fail", addCluster, fanout.Fail, "ap-south", after("put", "us-east"), never, done, 0},

		{"account add/activation/fail", addTenant, fanout.Fail, "ap-south", after("put", "us-east"), never, forward("ap-south"), 0},
		{"account add/activation/wait, it comes back", addTenant, fanout.Wait, "ap-south", after("put", "us-east"), soon, done, 0},
		{"account add/activation/wait, it does not", addTenant, fanout.Wait, "ap-south", after("put", "us-east"), never, forward("ap-south"), 2},
		{"account update/finding/fail", updateTenant, fanout.Fail, "us-east", always, never, aborted, 0},
		{"account update/finding/fail, a replica's", updateTenant, fanout.Fail, "ap-south", always, never, forward("ap-south"), 0},
		{"account update/activation/wait, it comes back", updateTenant, fanout.Wait, "ap-south", after("put", "us-east"), soon, done, 0},

		{"remove/finding/fail", removeCluster, fanout.Fail, "us-east", always, never, aborted, 0},
		{"remove/finding/wait, it comes back", removeCluster, fanout.Wait, "us-east", always, soon, done, 0},
		{"remove/finding/wait, it does not", removeCluster, fanout.Wait, "us-east", always, never, late, 0},
		{"remove/finding/forward, the primary's", removeCluster, fanout.Forward, "us-east", always, never, aborted, 0},
		{"remove/finding/forward, a guard's", removeCluster, fanout.Forward, "ap-south", always, never, forward("ap-south"), 0},
		{"remove/clearing/fail", removeCluster, fanout.Fail, "ap-south", after("put", "us-east"), never, forward("ap-south"), 0},
		{"remove/clearing/wait, it comes back", removeCluster, fanout.Wait, "ap-south", after("put", "us-east"), soon, done, 0},
		{"remove/clearing/forward", removeCluster, fanout.Forward, "ap-south", after("put", "us-east"), never, forward("ap-south"), 0},

		{"account remove/listing/fail", removeTenant, fanout.Fail, "ap-south", always, never, aborted, 0},
		{"account remove/listing/wait, it comes back", removeTenant, fanout.Wait, "ap-south", always, soon, done, 0},
		{"account remove/listing/forward", removeTenant, fanout.Forward, "ap-south", always, never, forward("ap-south", "us-east"), 0},
		{"account remove/clearing/fail", removeTenant, fanout.Fail, "ap-south", after("put", "us-east"), never, forward("ap-south", "us-east"), 0},
		{"account remove/clearing/wait, it comes back", removeTenant, fanout.Wait, "ap-south", after("put", "us-east"), soon, done, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := waltest.NewMemory()
			ctx, cancel := withCancel(t)
			defer cancel()
			tired := cancel
			if tc.mode != fanout.Wait {
				tired = func() {} // the operation ends without a cancelled context
			}
			c := coordinator(t, r, log, fanout.Options{
				Observer: silence(t, r, tc.silent, tc.when, tc.back, tc.others, tired), Cleanup: 300 * time.Millisecond,
				MaxInFlight: time.Nanosecond, LeaseTimeout: 400 * time.Millisecond,
			})
			op, err := tc.run(ctx, c, tc.mode)
			r.Partition(tc.silent, false)
			tc.want(t, op, err)
			require.NoError(t, c.Wait(t.Context()))
			_, err = c.Recover(t.Context())
			require.NoError(t, err)
			requireSettled(t, log)
			awaitClean(t, c)
		})
	}

	t.Run("add/commit/fail, its answer is lost and it stays away", func(t *testing.T) {
		log := waltest.NewMemory()
		ctx, cancel := withCancel(t)
		defer cancel()
		c := coordinator(t, r, log, fanout.Options{LeaseTimeout: 5 * time.Second, Cleanup: 300 * time.Millisecond, Observer: &fanout.Observer{
			Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Done && e.Verb == "read" && e.Err != nil {
					cancel() // the operation's commit was sent
				}
			},
		}})
		server := r.Server("us-east")
		server.Inject(regiontest.Fault{Verb: "update", Resource: serviceClusterResource.GroupResource(), Do: regiontest.DropReply()})
		server.Inject(regiontest.Fault{Verb: "get", Resource: serviceClusterResource.GroupResource(), Times: -1, Do: regiontest.DropRequest()})
		op, err := addCluster(ctx, c, fanout.Fail)
		inDoubt(t, op, err)
		server.Reset()
		op, err = c.Outcome(t.Context(), op.ID)
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State, "the commit had been applied")
		require.NoError(t, c.Wait(t.Context()))
		requireSettled(t, log)
	})
}

// Only a guard in an unreachable peer is left of an object. A repeated removal with the policy
// Forward returns ErrNotFound.
func TestARetriedForwardRemovalSaysThatItIsGone(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	r.Partition("ap-south", true)
	op, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	require.Equal(t, []region.PeerName{"ap-south"}, pendingPeers(op))

	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	require.ErrorContains(t, err, "ap-south does not answer")
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.ErrorIs(t, err, fanout.ErrAborted, "without Forward every peer must say so")
	require.ErrorIs(t, err, region.ErrUnavailable)

	// An object whose guard is in a reachable peer does not count as gone.
	r.Partition("ap-south", false)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db-2"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	r.Partition("us-east", true)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db-2"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorIs(t, err, region.ErrUnavailable)
}

// An aborted operation stays in the log while one of its requests may still be applied. Recovery
// returns the operation once, and later operations do not read the peers for it.
func TestAnAbortedOperationIsToldOnce(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	_, log := stop(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"}, "", func(e fanout.StepEvent) bool { return e.Verb == "advance" })

	c := coordinator(t, r, log, fanout.Options{})
	ops, err := c.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Equal(t, fanout.Aborted, ops[0].State)

	ops, err = coordinator(t, r, log, fanout.Options{}).Recover(t.Context())
	require.NoError(t, err)
	require.Empty(t, ops, "it was returned before")
	r.Server("ap-south").Reset()
	_, err = coordinator(t, r, log, fanout.Options{}).Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)
	require.Zero(t, calls(r.Server("ap-south"), serviceClusterResource.GroupResource()), "nothing is read for it")

	expired := coordinator(t, r, log, fanout.Options{MaxInFlight: time.Nanosecond})
	_, err = expired.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)
	requireSettled(t, log)
	requireClean(t, c)
}

func TestKubernetesOwnNamespacesAreNobodys(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	for _, name := range []string{"kube-system", "kube-public", "default"} {
		_, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{})
		require.ErrorContains(t, err, "Kubernetes' own")
		_, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
		require.ErrorIs(t, err, fanout.ErrNotFound)
	}
}
