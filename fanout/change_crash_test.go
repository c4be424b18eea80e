// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// changeCases are changes of the membership of a ring.
var changeCases = []struct {
	name    string
	members []region.PeerName // before the change
	after   []region.PeerName
	run     func(ctx context.Context, c *fanout.Coordinator) (*fanout.Change, error)
}{
	{
		"join", []region.PeerName{"eu-west", "us-east"}, []region.PeerName{"ap-south", "eu-west", "us-east"},
		func(ctx context.Context, c *fanout.Coordinator) (*fanout.Change, error) {
			return c.Join(ctx, "ap-south")
		},
	},
	{
		"leave", []region.PeerName{"ap-south", "eu-west", "us-east"}, []region.PeerName{"eu-west", "us-east"},
		func(ctx context.Context, c *fanout.Coordinator) (*fanout.Change, error) {
			return c.Leave(ctx, "ap-south")
		},
	},
	{
		"force-remove", []region.PeerName{"ap-south", "eu-west", "us-east"}, []region.PeerName{"eu-west", "us-east"},
		func(ctx context.Context, c *fanout.Coordinator) (*fanout.Change, error) {
			return c.ForceRemove(ctx, "ap-south", fanout.ForceRemoveOptions{By: "alice"})
		},
	},
}

// TestCrashAtEveryCommandOfAChange stops a coordinator at each of its commands, once before and
// once after the command. With -short it leaves commands out (see stride). The next coordinator has
// the log, or has an empty log and finds the change in the slots of the PeerSets. In the end the
// ring has its old or its new members.
func TestCrashAtEveryCommandOfAChange(t *testing.T) {
	for _, tc := range changeCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := distant(servers(t, tc.members...))
				acme := unique("acme")
				c := of(t, r, tc.members...)
				_, err := c.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "us-east"})
				require.NoError(t, err)
				_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
				require.NoError(t, err)
				for _, after := range []bool{false, true} {
					at := 0
					for ; crashChange(t, r, tc.members, tc.after, tc.run, at, after, at%2 == 0); at += stride() {
					}
					require.Greater(t, at, 12, "a change has more commands than that")
				}
			})
		})
	}
}

// crashChange crashes one change at the command whose number is at. It returns false if the change
// was over before that command.
func crashChange(t *testing.T, r *regiontest.Ring, before, then []region.PeerName, run func(context.Context, *fanout.Coordinator) (*fanout.Change, error), at int, after, logged bool) bool {
	t.Helper()
	defer restore(t, r, before)
	configured := []region.PeerName{"ap-south", "eu-west", "us-east"}
	log, stop := waltest.NewMemory(), newCrash(at, after)
	doomed := coordinator(t, some(t, r, configured...), log, fanout.Options{
		Observer: &fanout.Observer{Step: func(ctx context.Context, e fanout.StepEvent) {
			if e.Verb != "sub" && e.Verb != "finish" { // these verbs run other machines
				stop.step(ctx, e)
			}
		}},
		Cleanup: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() {
		_, err := run(ctx, doomed)
		returned <- err
	}()
	select {
	case err := <-returned:
		cancel()
		require.NoError(t, err)
		return false
	case <-stop.stopped:
	}
	time.Sleep(time.Millisecond) // virtual time: longer than the successor's MaxInFlight
	next := waltest.NewMemory()
	if logged {
		next = log.Reopen()
	}
	successor := coordinator(t, some(t, r, configured...), next, fanout.Options{MaxInFlight: time.Nanosecond})
	_, err := successor.Recover(t.Context())
	require.NoError(t, err, "command %d", at)
	requireSettled(t, next)
	requireRing(t, r, before, then)

	heal := cutOff(r)
	cancel()
	close(stop.release)
	t.Logf("the dead process would have said: %v", <-returned)
	heal()
	return true
}

// requireRing sweeps the ring, and fails the test unless the ring has the members of one of rings,
// and an audit then reports no violation and no work in progress.
func requireRing(t *testing.T, r *regiontest.Ring, rings ...[]region.PeerName) {
	t.Helper()
	var texts []string
	for _, ring := range rings {
		c := of(t, r, ring...)
		_, err := c.Sweep(t.Context())
		require.NoError(t, err)
		report, err := c.Audit(t.Context(), false)
		require.NoError(t, err)
		require.NoError(t, report.Unread.Err())
		if len(report.Violations) == 0 && len(report.Pending) == 0 {
			return
		}
		for _, v := range report.Violations {
			texts = append(texts, v.Text)
		}
		for _, v := range report.Pending {
			texts = append(texts, v.Text)
		}
	}
	t.Fatalf("the ring is neither as it was nor as it was to be: %v", texts)
}

// restore gives the ring its members back before the next crash.
func restore(t *testing.T, r *regiontest.Ring, before []region.PeerName) {
	t.Helper()
	c := of(t, r, "ap-south", "eu-west", "us-east")
	change := c.Join
	if len(before) == 2 {
		change = c.Leave
	}
	_, err := change(t.Context(), "ap-south")
	if !errors.Is(err, fanout.ErrMembership) {
		require.NoError(t, err)
	}
}

// cutOff partitions all peers and returns the function that heals them.
func cutOff(r *regiontest.Ring) func() {
	for _, p := range four {
		r.Partition(p, true)
	}
	return func() {
		for _, p := range four {
			r.Partition(p, false)
		}
	}
}
