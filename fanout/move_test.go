// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// requireHome fails the test unless home holds the account's primary, all peers name it, and no
// other peer has a primary.
func requireHome(t *testing.T, r *regiontest.Ring, name string, home region.PeerName) {
	t.Helper()
	for _, peer := range peers {
		obj := accountIn(t, r, peer, name)
		state := obj.Object["spec"].(map[string]any)["fanout"].(map[string]any)
		require.Equal(t, string(home), state["home"].(map[string]any)["peer"], peer)
		require.NotContains(t, state["home"], "yielded", peer)
		if peer == home {
			require.Contains(t, obj.GetFinalizers(), v1alpha1.PrimaryFinalizer, peer)
			require.Contains(t, state, "history", peer)
		} else {
			require.NotContains(t, obj.GetFinalizers(), v1alpha1.PrimaryFinalizer, peer)
			require.NotContains(t, state, "history", peer)
		}
	}
}

// accountIn returns the account in peer.
func accountIn(t *testing.T, r *regiontest.Ring, peer region.PeerName, name string) *unstructured.Unstructured {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	obj, err := conn.Dynamic().Resource(fanout.ServiceClusters().Within).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return obj
}

// yield makes only the first write of a move: the object in from yields to the object in to.
func yield(t *testing.T, r *regiontest.Ring, name string, from, to region.PeerName) {
	t.Helper()
	obj := accountIn(t, r, from, name)
	home := map[string]any{"peer": string(to), "uid": string(accountIn(t, r, to, name).GetUID()), "term": int64(2), "yielded": true}
	require.NoError(t, unstructured.SetNestedMap(obj.Object, home, "spec", "fanout", "home"))
	conn, err := r.Conn(from)
	require.NoError(t, err)
	_, err = conn.Dynamic().Resource(fanout.ServiceClusters().Within).Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestMoveThereAndBack(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := addAccount(t, c)
	requireHome(t, r, name, "ap-south")
	for i, to := range []region.PeerName{"eu-west", "us-east", "ap-south", "eu-west"} {
		op, err := c.Move(t.Context(), accounts, key("", name), to, fanout.MoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
		require.Equal(t, to, op.Primary)
		require.False(t, op.AlreadyDone)
		requireHome(t, r, name, to)
		requireClean(t, c)

		again, err := c.Move(t.Context(), accounts, key("", name), to, fanout.MoveOptions{})
		require.NoError(t, err)
		require.True(t, again.AlreadyDone)

		op, err = c.Update(t.Context(), newAccount(name, []any{"Provider", "Tenant"}[i%2]), fanout.AddOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
		require.EqualValues(t, i+2, op.Revision, "the revisions go on where they were")
		require.Equal(t, to, op.Primary)
		requireClean(t, c)
	}
	op, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.Nil(t, held(t, r, key("", name)))
	requireSettled(t, log)
	requireClean(t, c)
}

// If an object without a claim has the name in the target, the error of the move reports it.
func TestMoveReportsWhatHasTheNameInItsTarget(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := addAccount(t, c)
	conn, err := r.Conn("eu-west")
	require.NoError(t, err)
	there := conn.Dynamic().Resource(fanout.ServiceClusters().Within)
	require.NoError(t, there.Delete(t.Context(), name, metav1.DeleteOptions{}))
	theirs, err := there.Create(t.Context(), newAccount(name, "Provider"), metav1.CreateOptions{})
	require.NoError(t, err)

	_, err = c.Move(t.Context(), accounts, key("", name), "eu-west", fanout.MoveOptions{})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []any{region.PeerName("eu-west"), theirs.GetUID(), ""}, []any{held.Holder, held.UID, held.Operation})
	require.NotErrorIs(t, err, region.ErrUnavailable)
	requireSettled(t, log)
	home, _, err := unstructured.NestedMap(accountIn(t, r, "ap-south", name).Object, "spec", "fanout", "home")
	require.NoError(t, err)
	require.Equal(t, []any{"ap-south", int64(1)}, []any{home["peer"], home["term"]}, "it never yielded")
}

func TestMoveRefuses(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	_, err := c.Move(t.Context(), accounts, key("", name), "mars", fanout.MoveOptions{})
	require.ErrorIs(t, err, region.ErrUnknownPeer)
	_, err = c.Move(t.Context(), accounts, key("", name), "", fanout.MoveOptions{})
	require.ErrorContains(t, err, "empty")
	_, err = c.Move(t.Context(), serviceClusters, key(name, "db"), "eu-west", fanout.MoveOptions{})
	require.ErrorContains(t, err, "Once")
	_, err = c.Move(t.Context(), accounts, key("", unique("nobody")), "eu-west", fanout.MoveOptions{})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	requireHome(t, r, name, "ap-south")
	requireClean(t, c)
}

// A move fails if the old or the new primary's peer does not answer. Any other peer follows the new
// primary when it answers.
func TestMoveAndSilentPeers(t *testing.T) {
	for silent, committed := range map[region.PeerName]bool{"ap-south": false, "eu-west": false, "us-east": true} {
		t.Run(string(silent), func(t *testing.T) {
			r := newRing(t)
			log := waltest.NewMemory()
			c := coordinator(t, r, log, fanout.Options{})
			name := addAccount(t, c)
			r.Partition(silent, true)
			op, err := c.Move(t.Context(), accounts, key("", name), "eu-west", fanout.MoveOptions{})
			if committed {
				require.NoError(t, err)
				require.Equal(t, fanout.Committed, op.State)
				require.Equal(t, []region.PeerName{silent}, pendingPeers(op))
				again, err := c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
				require.NoError(t, err)
				require.EqualValues(t, "eu-west", again.Primary)
			} else {
				require.ErrorIs(t, err, fanout.ErrAborted)
				require.ErrorIs(t, err, region.ErrUnavailable)
			}
			r.Partition(silent, false)
			_, err = c.Recover(t.Context())
			require.NoError(t, err)
			if committed {
				requireHome(t, r, name, "eu-west")
			} else {
				requireHome(t, r, name, "ap-south")
			}
			requireSettled(t, log)
			requireClean(t, c)
		})
	}
}

// A move with the policy Wait continues when its peers answer.
func TestMoveWaits(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := addAccount(t, c)
	r.Server("eu-west").Inject(regiontest.Fault{Times: 20, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	op, err := c.Move(t.Context(), accounts, key("", name), "eu-west", fanout.MoveOptions{Unreachable: fanout.Wait})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	requireHome(t, r, name, "eu-west")
	requireSettled(t, log)
	requireClean(t, c)
}

// An update, a sweep and a move each finish an unfinished move that they meet, and a removal
// removes the object. If the object that is to become the home is gone, a sweep takes the move
// back.
func TestAMoveInTheMiddleIsFinishedByWhoeverMeetsIt(t *testing.T) {
	for what, meet := range map[string]func(ctx context.Context, c *fanout.Coordinator, name string) error{
		"update": func(ctx context.Context, c *fanout.Coordinator, name string) error {
			_, err := c.Update(ctx, newAccount(name, "Provider"), fanout.AddOptions{})
			return err
		},
		"sweep": func(ctx context.Context, c *fanout.Coordinator, _ string) error {
			_, err := c.Sweep(ctx)
			return err
		},
		"move": func(ctx context.Context, c *fanout.Coordinator, name string) error {
			_, err := c.Move(ctx, accounts, key("", name), "eu-west", fanout.MoveOptions{})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRing(t)
			name := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
			yield(t, r, name, "ap-south", "eu-west")
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
			require.NoError(t, meet(t.Context(), c, name))
			requireHome(t, r, name, "eu-west")
			requireClean(t, c)
		})
	}
	t.Run("removal", func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		name := addAccount(t, c)
		yield(t, r, name, "ap-south", "eu-west")
		op, err := c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
		require.Nil(t, held(t, r, key("", name)))
	})
	t.Run("the next home is gone", func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		name := addAccount(t, c)
		yield(t, r, name, "ap-south", "eu-west")
		conn, err := r.Conn("eu-west")
		require.NoError(t, err)
		require.NoError(t, conn.Dynamic().Resource(fanout.ServiceClusters().Within).Delete(t.Context(), name, metav1.DeleteOptions{}))
		_, err = c.Sweep(t.Context())
		require.NoError(t, err)
		requireHome(t, r, name, "ap-south")
		requireClean(t, c)
	})
}

// A removal by the UID of an earlier primary removes the object, whichever peer has the primary
// now.
func TestRemoveByTheUIDOfAnEarlierPrimary(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	uid := accountIn(t, r, "ap-south", name).GetUID()
	_, err := c.Move(t.Context(), accounts, key("", name), "eu-west", fanout.MoveOptions{})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{UID: types.UID("another")})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	_, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{UID: uid})
	require.NoError(t, err)
	require.Nil(t, held(t, r, key("", name)))
}
