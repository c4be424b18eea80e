// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var four = []region.PeerName{"ap-south", "eu-west", "sa-east", "us-east"}

// servers returns four peers in memory, of which the named ones are a ring.
func servers(t testing.TB, members ...region.PeerName) *regiontest.Ring {
	t.Helper()
	r := regiontest.NewRing(four...)
	t.Cleanup(r.Close)
	require.NoError(t, r.AddDefinitions(definitions(t)))
	require.NoError(t, of(t, r, members...).InitPeers(t.Context()))
	return r
}

// of returns a coordinator that has the named peers of r configured.
func of(t testing.TB, r region.Directory, names ...region.PeerName) *fanout.Coordinator {
	t.Helper()
	return coordinator(t, some(t, r, names...), waltest.NewMemory(), fanout.Options{})
}

// requireStates fails the test unless the peers have these states in their own PeerSets.
func requireStates(t *testing.T, change *fanout.Change, states map[region.PeerName]v1alpha1.PeerState) {
	t.Helper()
	got := map[region.PeerName]v1alpha1.PeerState{}
	for o := range change.Peers.All() {
		require.NoError(t, o.Err)
		got[o.Peer] = o.Value
	}
	require.Equal(t, states, got)
}

func TestARingGrowsAndShrinks(t *testing.T) {
	r := servers(t, "eu-west", "us-east")
	two := of(t, r, "eu-west", "us-east")
	acme := addAccount(t, two)
	_, err := two.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)

	three := of(t, r, "ap-south", "eu-west", "us-east")
	change, err := three.Join(t.Context(), "ap-south")
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	requireStates(t, change, map[region.PeerName]v1alpha1.PeerState{"ap-south": "Active", "eu-west": "Active", "us-east": "Active"})
	requireClean(t, three)
	_, err = three.Add(t.Context(), newServiceCluster(acme, "cache"), fanout.AddOptions{Target: "ap-south", Durable: true})
	require.NoError(t, err)
	again, err := three.Join(t.Context(), "ap-south")
	require.NoError(t, err)
	require.True(t, again.AlreadyDone)

	all := of(t, r, four...)
	_, err = all.Join(t.Context(), "sa-east")
	require.NoError(t, err)
	requireClean(t, all)
	_, err = all.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "sa-east"})
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, "us-east", held.Holder)

	_, err = all.Leave(t.Context(), "ap-south")
	var blocked *fanout.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, "serviceclusters "+acme+"/cache in ap-south")
	requireClean(t, all)
	_, err = all.Remove(t.Context(), serviceClusters, key(acme, "cache"), fanout.RemoveOptions{})
	require.NoError(t, err)

	change, err = all.Leave(t.Context(), "sa-east")
	require.NoError(t, err)
	requireStates(t, change, map[region.PeerName]v1alpha1.PeerState{"ap-south": "Active", "eu-west": "Active", "sa-east": "Out", "us-east": "Active"})
	requireClean(t, three)
	_, err = three.Leave(t.Context(), "ap-south")
	require.NoError(t, err)
	requireClean(t, two)
	_, err = two.Add(t.Context(), newServiceCluster(acme, "cache"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
}

func TestAMemberIsGivenUpAndComesBack(t *testing.T) {
	r := servers(t, four...)
	all := of(t, r, four...)
	acme := unique("acme")
	_, err := all.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	_, err = all.Add(t.Context(), newServiceCluster(acme, "lost"), fanout.AddOptions{Target: "sa-east"})
	require.NoError(t, err)
	_, err = all.Add(t.Context(), newServiceCluster(acme, "kept"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	r.Partition("sa-east", true)
	three := of(t, r, "ap-south", "eu-west", "us-east")
	_, err = three.ForceRemove(t.Context(), "sa-east", fanout.ForceRemoveOptions{})
	require.ErrorContains(t, err, "By is empty")
	change, err := three.ForceRemove(t.Context(), "sa-east", fanout.ForceRemoveOptions{By: "alice"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	_, err = three.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, three)
	_, err = three.Add(t.Context(), newServiceCluster(acme, "new"), fanout.AddOptions{Target: "eu-west", Durable: true})
	require.NoError(t, err)
	again, err := three.ForceRemove(t.Context(), "sa-east", fanout.ForceRemoveOptions{By: "alice"})
	require.NoError(t, err)
	require.True(t, again.AlreadyDone)

	r.Partition("sa-east", false)
	change, err = all.Join(t.Context(), "sa-east")
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	requireClean(t, all)
	// A name that sa-east owned and that no other peer has taken belongs to sa-east again.
	_, err = all.Add(t.Context(), newServiceCluster(acme, "lost"), fanout.AddOptions{Target: "us-east"})
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, "sa-east", held.Holder)
}

// TestAddsWhileARingGrows adds objects with old and new peers as targets while two peers join.
// Afterwards a sweep leaves a ring in which an audit finds nothing.
func TestAddsWhileARingGrows(t *testing.T) {
	r := servers(t, "eu-west", "us-east")
	old := of(t, r, "eu-west", "us-east")
	acme := addAccount(t, old)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 5 {
				peers := four
				if i%2 == 0 {
					peers = []region.PeerName{"eu-west", "us-east"}
				}
				target := peers[n%len(peers)]
				// An add may fail, depending on when it runs; the invariants hold in any case.
				_, err := of(t, r, peers...).Add(t.Context(), newServiceCluster(acme, fmt.Sprintf("db-%d", n)), fanout.AddOptions{Target: target})
				t.Logf("%d: %v", i, err)
			}
		})
	}
	for _, peer := range []region.PeerName{"ap-south", "sa-east"} {
		wg.Go(func() {
			names := slices.Clone(four)
			_, err := of(t, r, names...).Join(t.Context(), peer)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	all := of(t, r, four...)
	_, err := all.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, all)
}

// TestAPeerIsLostInTheMiddleOfAJoin loses the first member while a join holds the slot of every
// PeerSet. The lost member can then be removed by force, and after this the newcomer can join.
func TestAPeerIsLostInTheMiddleOfAJoin(t *testing.T) {
	r := servers(t, "ap-south", "eu-west", "us-east")
	acme := unique("acme")
	_, err := of(t, r, "ap-south", "eu-west", "us-east").Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	doomed := coordinator(t, some(t, r, four...), waltest.NewMemory(), fanout.Options{Cleanup: time.Millisecond, Observer: &fanout.Observer{
		Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Verb == "survey" && e.Peer == "eu-west" {
				r.Partition("ap-south", true)
				cancel()
			}
		},
	}})
	_, err = doomed.Join(ctx, "sa-east")
	require.Error(t, err)

	three := of(t, r, "eu-west", "sa-east", "us-east")
	_, err = three.ForceRemove(t.Context(), "ap-south", fanout.ForceRemoveOptions{By: "alice"})
	require.NoError(t, err)
	change, err := three.Join(t.Context(), "sa-east")
	require.NoError(t, err)
	requireStates(t, change, map[region.PeerName]v1alpha1.PeerState{"eu-west": "Active", "sa-east": "Active", "us-east": "Active"})
	requireClean(t, three)
}
