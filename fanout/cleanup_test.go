// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// removals are the ways in which an object that exists once is removed.
var removals = map[string]func(t *testing.T, c *fanout.Coordinator, client dynamic.ResourceInterface, acme string){
	"by a coordinator": func(t *testing.T, c *fanout.Coordinator, _ dynamic.ResourceInterface, acme string) {
		t.Helper()
		op, err := c.Remove(within(t, 3*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Committed, op.State)
	},
	"by kubectl delete": func(t *testing.T, c *fanout.Coordinator, client dynamic.ResourceInterface, _ string) {
		t.Helper()
		require.NoError(t, client.Delete(t.Context(), "db", metav1.DeleteOptions{}))
		_, err := c.Sweep(t.Context())
		require.NoError(t, err)
	},
}

// A finalizer of an author's controller on the object in its own peer is a hook before the removal: until the controller
// removes the finalizer, each other peer keeps its guard, so no peer can have another object of the name. This holds while
// the object's peer is away, while another peer is away, and after a crash of the coordinator.
func TestAFinalizerRunsBeforeTheNameIsFree(t *testing.T) {
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRing(t)
				log := waltest.NewMemory()
				c := coordinator(t, r, log, fanout.Options{LeaseTimeout: 15 * time.Second})
				acme := addAccount(t, c)
				_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
				require.NoError(t, err)
				client := clusters(t, r, "us-east", acme)
				release := hold(t, client, "db")
				remove(t, c, client, acme)
				requireTaken := func(c *fanout.Coordinator, away ...region.PeerName) {
					t.Helper()
					for _, peer := range []region.PeerName{"ap-south", "eu-west"} {
						if !slices.Contains(away, peer) {
							require.True(t, holds(t, r, peer, acme, "db"), peer)
						}
					}
					_, err := c.Add(within(t, 3*time.Second), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
					require.Error(t, err)
				}
				requireTaken(c)
				for _, peer := range []region.PeerName{"us-east", "ap-south"} {
					r.Partition(peer, true)
					recoverWithin(t, c)
					requireTaken(c, peer)
					r.Partition(peer, false)
				}
				c = coordinator(t, r, log, fanout.Options{LeaseTimeout: 15 * time.Second}) // the process was restarted
				time.Sleep(time.Minute)
				recoverWithin(t, c)
				requireTaken(c)

				release()
				recoverWithin(t, c)
				requireClean(t, c)
				_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west", Durable: true})
				require.NoError(t, err)
			})
		})
	}
}

// If the peer of the object is away, neither a removal nor a clean-up begins. The name stays taken.
func TestARemovalWaitsForThePeerOfTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 15 * time.Second})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		r.Partition("us-east", true)
		_, err = c.Remove(within(t, 10*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.Error(t, err)
		for _, peer := range []region.PeerName{"ap-south", "eu-west"} {
			require.True(t, holds(t, r, peer, acme, "db"), peer)
		}
		r.Partition("us-east", false)
		obj, err := clusters(t, r, "us-east", acme).Get(t.Context(), "db", metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, obj.GetDeletionTimestamp())
	})
}

// recoverWithin recovers and sweeps, without waiting long for peers that are away.
func recoverWithin(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, _ = c.Recover(ctx)
	_, _ = c.Sweep(ctx)
}
