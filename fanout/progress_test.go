// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// watched is a Progress that records the states of each peer.
type watched struct {
	*fanout.Progress
	mu     sync.Mutex
	states map[region.PeerName][]fanout.ProgressState
}

func watch() *watched {
	w := &watched{states: map[region.PeerName][]fanout.ProgressState{}}
	w.Progress = fanout.NewProgress(func(p fanout.PeerProgress) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.states[p.Peer] = append(w.states[p.Peer], p.State)
	})
	return w
}

func (w *watched) take() map[region.PeerName][]fanout.ProgressState {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.states
	w.states = map[region.PeerName][]fanout.ProgressState{}
	return taken
}

func (w *watched) observer() *fanout.Observer {
	return &fanout.Observer{Step: w.Step, End: w.End}
}

func TestProgress(t *testing.T) {
	r := newRing(t)
	w := watch()
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: w.observer(), LeaseTimeout: time.Minute})
	name := unique("acme")
	const (
		reserving, held, committing, committed = fanout.ProgressReserving, fanout.ProgressHeld, fanout.ProgressCommitting, fanout.ProgressCommitted
		activating, confirmed                  = fanout.ProgressActivating, fanout.ProgressConfirmed
		clearing, cleared                      = fanout.ProgressClearing, fanout.ProgressCleared
	)
	type states = []fanout.ProgressState

	_, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	require.Equal(t, map[region.PeerName][]fanout.ProgressState{
		"ap-south": states{reserving, held, activating, confirmed},
		"eu-west":  states{reserving, held, committing, committed, activating, confirmed},
		"us-east":  states{reserving, held, activating, confirmed},
	}, w.take())
	require.Empty(t, w.Peers(), "it has ended")

	_, err = c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, map[region.PeerName][]fanout.ProgressState{
		"ap-south": states{activating, confirmed},
		"eu-west":  states{committing, committed, activating, confirmed},
		"us-east":  states{activating, confirmed},
	}, w.take())

	_, err = c.Add(t.Context(), newServiceCluster(name, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.Equal(t, map[region.PeerName][]fanout.ProgressState{
		"ap-south": states{reserving, held, confirmed},
		"eu-west":  states{reserving, held, confirmed},
		"us-east":  states{reserving, held, committing, committed, activating, confirmed},
	}, w.take())

	_, err = c.Remove(t.Context(), serviceClusters, key(name, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, map[region.PeerName][]fanout.ProgressState{
		"ap-south": states{clearing, cleared},
		"eu-west":  states{clearing, cleared},
		"us-east":  states{committing, committed, clearing, cleared, clearing, cleared},
	}, w.take())
}

// Progress reports since when a peer has not answered.
func TestProgressOfASilentPeer(t *testing.T) {
	r := newRing(t)
	w := watch()
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: w.observer(), LeaseTimeout: time.Minute})
	acme := addAccount(t, c)
	r.Partition("ap-south", true)
	begun := time.Now()
	ctx, cancel := withCancel(t)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		_, err := c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
		require.ErrorIs(t, err, fanout.ErrAborted)
	})
	require.Eventually(t, func() bool {
		all := w.Peers()
		if len(all) != 3 || all[0].Err == nil {
			return false
		}
		return all[0].Peer == "ap-south" && all[0].State == fanout.ProgressReserving && !all[0].Unanswered.IsZero() &&
			all[1].State == fanout.ProgressHeld && all[1].Unanswered.IsZero() &&
			all[2].State == fanout.ProgressHeld
	}, time.Minute, time.Millisecond)
	all := w.Peers()
	require.WithinRange(t, all[0].Unanswered, begun, time.Now())
	require.ErrorIs(t, all[0].Err, region.ErrUnavailable)
	require.Equal(t, key(acme, "db"), all[0].Key)
}
