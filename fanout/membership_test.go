// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// some returns a directory of the named peers of d.
func some(t testing.TB, d region.Directory, names ...region.PeerName) region.Directory {
	t.Helper()
	var conns []*region.Conn
	for _, name := range names {
		conn, err := d.Conn(name)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	return region.Fixed(conns...)
}

func TestAMemberThatIsNotConfiguredIsNamed(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	c := coordinator(t, some(t, r, "eu-west", "us-east"), waltest.NewMemory(), fanout.Options{})
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, "ap-south is a member and not configured")
	requireClean(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
}

func TestAConfiguredPeerThatIsNoMemberIsNamed(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		sets := conn.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("peersets"))
		set, err := sets.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
		require.NoError(t, err)
		spec := set.Object["spec"].(map[string]any)
		spec["members"] = without(spec["members"].([]any), "ap-south")
		spec["epoch"] = int64(2)
		_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorContains(t, err, "ap-south is configured and no member")
	require.ErrorIs(t, c.InitPeers(t.Context()), fanout.ErrMembership)
}

func without(members []any, peer string) []any {
	var left []any
	for _, m := range members {
		if m.(map[string]any)["peer"] != peer {
			left = append(left, m)
		}
	}
	return left
}

func TestTwoNamesForOneClusterAreRefused(t *testing.T) {
	r := newRing(t)
	creds, err := region.FromConfig(r.Server("us-east").Config())
	require.NoError(t, err)
	twin, err := region.NewConn(region.Peer{Name: "us-east-again", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	us, err := r.Conn("us-east")
	require.NoError(t, err)
	c := coordinator(t, region.Fixed(us, twin), waltest.NewMemory(), fanout.Options{})
	_, err = c.Add(t.Context(), newAccount(unique("acme")), fanout.AddOptions{})
	require.ErrorIs(t, err, region.ErrSameCluster)
	require.ErrorContains(t, err, "us-east-again")
	require.ErrorIs(t, c.InitPeers(t.Context()), region.ErrSameCluster)
}

func TestUnknownTargetIsNamed(t *testing.T) {
	c := coordinator(t, newRing(t), waltest.NewMemory(), fanout.Options{})
	_, err := c.Add(t.Context(), newServiceCluster("acme", "db"), fanout.AddOptions{Target: "mars"})
	require.ErrorIs(t, err, region.ErrUnknownPeer)
	require.ErrorContains(t, err, "ap-south, eu-west, us-east")
	_, err = c.Add(t.Context(), newServiceCluster("acme", "db"), fanout.AddOptions{})
	require.ErrorContains(t, err, "Target is required")
}

// An unreachable peer makes an add fail without effect. The removal of an object that exists once
// skips that peer, and the guard in the peer is deleted when the peer answers again.
func TestOnePeerDown(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	r.Partition("eu-west", true)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "other"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorIs(t, err, region.ErrUnavailable)
	require.ErrorContains(t, err, "eu-west")

	op, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)
	require.Equal(t, []region.PeerName{"eu-west"}, pendingPeers(op))
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.False(t, report.Unread.Complete())

	r.Partition("eu-west", false)
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	awaitClean(t, c)
}

// An Account's removal skips no peer: the primary stays, as Removing, until all peers have
// confirmed.
func TestAccountRemovalWaitsForEveryPeer(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := addAccount(t, c)
	r.Partition("us-east", true)
	_, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	require.ErrorIs(t, err, fanout.ErrAborted, "by default an unreachable peer fails it")
	op, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State)

	_, err = c.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "eu-west"})
	require.Error(t, err, "the name is taken while the tombstone stands")
	r.Partition("us-east", false)
	_, err = c.Recover(t.Context())
	require.NoError(t, err)
	requireSettled(t, log)
	requireClean(t, c)
	require.Nil(t, held(t, r, key("", name)))
}

// Six coordinators add one name at once. Exactly one add is committed, and the others return a
// HeldError.
func TestRivals(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	for round := range 10 {
		name := unique("db")
		const rivals = 6
		errs := make([]error, rivals)
		var wg sync.WaitGroup
		for i := range rivals {
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 5 * time.Second})
			wg.Go(func() {
				_, errs[i] = c.Add(within(t, 30*time.Second), newServiceCluster(acme, name), fanout.AddOptions{Target: peers[i%len(peers)], Durable: true})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			_, ok := errors.AsType[*fanout.HeldError](err)
			require.True(t, ok, "round %d: %v", round, err)
		}
		require.Equal(t, 1, won, "round %d: %v", round, errs)
		requireClean(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	}
}

// Start restores a guard that was deleted by hand, and returns when its context ends.
func TestStartMendsAndEnds(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{SweepEvery: time.Millisecond})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	var wg sync.WaitGroup
	ctx, stop := withCancel(t)
	wg.Go(func() { require.NoError(t, c.Start(ctx)) })
	conn, err := r.Conn("eu-west")
	require.NoError(t, err)
	client := conn.Dynamic().Resource(serviceClusterResource).Namespace(acme)
	require.NoError(t, client.Delete(t.Context(), "db", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := client.Get(t.Context(), "db", metav1.GetOptions{})
		return err == nil
	}, time.Minute, time.Millisecond)
	stop()
	wg.Wait()
}

// A peer whose credentials lead to the cluster of another peer is not trusted: if a primary is
// absent from that cluster, the primary's guards do not count as dead.
func TestASweepDoesNotBelieveAClusterOfAnotherName(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west", Durable: true})
	require.NoError(t, err)
	creds, err := region.FromConfig(r.Server("us-east").Config())
	require.NoError(t, err)
	swapped, err := region.NewConn(region.Peer{Name: "eu-west", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	ap, err := r.Conn("ap-south")
	require.NoError(t, err)
	us, err := r.Conn("us-east")
	require.NoError(t, err)
	for _, p := range peers {
		r.Server(p).Reset()
	}
	misled := coordinator(t, region.Fixed(ap, swapped, us), waltest.NewMemory(), fanout.Options{})
	_, err = misled.Sweep(t.Context())
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorContains(t, err, "eu-west")
	require.Zero(t, writes(r))
	report, err := misled.Audit(t.Context(), true)
	require.NoError(t, err)
	require.ErrorContains(t, report.Unread.Err(), "calls itself us-east")
	require.Zero(t, writes(r))
	requireClean(t, c)
}

// A peer whose credentials lead to a cluster of another ring is not trusted: if a primary is
// absent from that cluster, the primary's guards do not count as dead.
func TestAnImpostorIsNotBelieved(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	other := newRing(t)
	creds, err := region.FromConfig(other.Server("eu-west").Config())
	require.NoError(t, err)
	impostor, err := region.NewConn(region.Peer{Name: "us-east", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	eu, err := r.Conn("eu-west")
	require.NoError(t, err)
	ap, err := r.Conn("ap-south")
	require.NoError(t, err)
	misled := coordinator(t, region.Fixed(ap, eu, impostor), waltest.NewMemory(), fanout.Options{})
	for _, server := range []region.PeerName{"ap-south", "eu-west"} {
		r.Server(server).Reset()
	}
	_, err = misled.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "ap-south"})
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorContains(t, err, "calls itself eu-west")
	for _, server := range []region.PeerName{"ap-south", "eu-west"} {
		for _, request := range r.Server(server).Requests() {
			require.NotEqual(t, "delete", request.Verb, "%s: %s", server, request.Path)
		}
	}
	requireClean(t, c)
}
