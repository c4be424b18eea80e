// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// measured wraps a log as a program does to measure it. It embeds the interface wal.Log, so it has
// no other methods of the wrapped log.
type measured struct{ wal.Log }

// pausing pauses an operation before its first command with the given verb and role.
type pausing struct {
	verb    string
	role    string // "": any
	met     atomic.Bool
	reached chan string // gets the operation's ID
	wait    chan struct{}
	release func()
}

func pauseAt(verb string) *pausing {
	wait := make(chan struct{})
	return &pausing{verb: verb, reached: make(chan string, 1), wait: wait, release: sync.OnceFunc(func() { close(wait) })}
}

func (h *pausing) observer() *fanout.Observer {
	return &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		if e.Verb == h.verb && (h.role == "" || e.Role == h.role) && !e.Done {
			if h.met.CompareAndSwap(false, true) {
				h.reached <- e.Operation
				<-h.wait
			}
		}
	}}
}

// TestSharedLogLeavesTheLiving: a coordinator does not take over the operation of a live
// coordinator with which it shares the log, whether the log is wrapped or not.
func TestSharedLogLeavesTheLiving(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(wal.Log) wal.Log{
		"plain":   func(l wal.Log) wal.Log { return l },
		"wrapped": func(l wal.Log) wal.Log { return measured{l} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, s := newRing(t), newCentral(t)
				hold := pauseAt("advance")
				defer hold.release()
				const lease = 400 * time.Millisecond
				working := coordinator(t, r, wrap(sharedLog(t, s, &line{})), fanout.Options{LeaseTimeout: lease, Observer: hold.observer()})
				other := coordinator(t, r, wrap(sharedLog(t, s, &line{})), fanout.Options{LeaseTimeout: lease})
				name, done := unique("acme"), make(chan error, 1)
				go func() {
					_, err := working.Add(t.Context(), newAccount(name), fanout.AddOptions{})
					done <- err
				}()
				<-hold.reached
				ops, err := other.Recover(t.Context())
				require.NoError(t, err)
				require.Empty(t, ops)
				time.Sleep(3 * lease)
				_, err = other.Add(t.Context(), newAccount(unique("beta")), fanout.AddOptions{})
				require.NoError(t, err)
				hold.release()
				require.NoError(t, <-done)
				requireClean(t, other)
				requireSettled(t, sharedLog(t, s, &line{}))
			})
		})
	}
}

// TestExclusiveLogIsRecoveredAtOnce: if an exclusive log, wrapped or not, has an open entry, the
// entry's process has ended. So recovery settles the entry without waiting for a lease.
func TestExclusiveLogIsRecoveredAtOnce(t *testing.T) {
	t.Parallel()
	for _, wrap := range []func(wal.Log) wal.Log{
		func(l wal.Log) wal.Log { return l },
		func(l wal.Log) wal.Log { return measured{l} },
	} {
		synctest.Test(t, func(t *testing.T) {
			r, log := newRing(t), waltest.NewMemory()
			left := newInterrupted(t, r)
			left.leave(t, log, 1)
			begun := time.Now()
			c := coordinator(t, r, wrap(log), fanout.Options{LeaseTimeout: time.Hour})
			ops, err := c.Recover(t.Context())
			require.NoError(t, err)
			require.Len(t, ops, 1)
			require.True(t, left.gone(t))
			require.Less(t, time.Since(begun), time.Minute, "virtual time")
		})
	}
}

// TestSharedLogWhileItWaits: while an operation waits for an older rival, the coordinators that
// share its log see its signs of life and do not take it over.
func TestSharedLogWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRing(t), newCentral(t)
		const lease = 400 * time.Millisecond
		hold := &pausing{verb: "create", role: "secondary", reached: make(chan string, 1), wait: make(chan struct{})}
		hold.release = sync.OnceFunc(func() { close(hold.wait) })
		defer hold.release()
		older := coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: lease, Observer: hold.observer()})
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		won, lost := make(chan error, 1), make(chan error, 1)
		go func() { // its primary has a heartbeat while one of its secondaries is delayed
			_, err := older.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
			won <- err
		}()
		<-hold.reached
		time.Sleep(lease) // the second add must start later: with equal starts the ID decides which is older
		waiting := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{LeaseTimeout: lease})
		go func() {
			_, err := waiting.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
			lost <- err
		}()
		other := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{LeaseTimeout: lease})
		for range 8 {
			time.Sleep(lease)
			ops, err := other.Recover(t.Context())
			require.NoError(t, err)
			require.Empty(t, ops)
		}
		hold.release()
		require.NoError(t, <-won)
		_, held := errors.AsType[*fanout.HeldError](<-lost)
		require.True(t, held)
		require.NoError(t, older.Wait(t.Context()))
		requireClean(t, other)
	})
}

// TestSharedLogAbortOfAnothers: Abort aborts an operation of another coordinator only if the
// caller sets Others, and then at once. If the former owner has not logged yet that a commit may
// be sent, its add is in doubt; otherwise the error of its add wraps ErrAborted.
func TestSharedLogAbortOfAnothers(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]func(t *testing.T, err error){
		"advance": func(t *testing.T, err error) { // before a commit may be sent: the log stops it
			doubt, ok := errors.AsType[*fanout.InDoubtError](err)
			require.True(t, ok, "%v", err)
			require.ErrorContains(t, err, "me/1 has taken the operation over")
			require.ErrorIs(t, doubt, wal.ErrStale)
		},
		"put": func(t *testing.T, err error) { // the commit: its primary is deleted
			require.ErrorIs(t, err, fanout.ErrAborted)
		},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			r, s := newRing(t), newCentral(t)
			hold := pauseAt(verb)
			defer hold.release()
			log := sharedLog(t, s, &line{})
			// The lease does not run out in this test, so a call that waits for it would hang.
			other := coordinator(t, r, measured{log}, fanout.Options{Identity: "me/1", LeaseTimeout: time.Hour, MaxInFlight: time.Nanosecond})
			acme := addAccount(t, other)
			working := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{Identity: "them/1", LeaseTimeout: time.Hour, Observer: hold.observer()})
			done := make(chan error, 1)
			go func() {
				_, err := working.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
				done <- err
			}()
			id := <-hold.reached
			_, err := other.Abort(t.Context(), id, fanout.AbortOptions{})
			foreign, ok := errors.AsType[*fanout.ForeignError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, "them/1", foreign.Coordinator)
			require.EqualValues(t, "us-east", foreign.Holder)
			require.WithinDuration(t, time.Now(), foreign.Since, time.Minute)
			op, err := other.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
			require.NoError(t, err)
			require.Equal(t, fanout.Aborted, op.State)
			hold.release()
			want(t, <-done)
			requireEnded(t, other, log, id)
			op, err = working.Outcome(t.Context(), id)
			require.ErrorIs(t, err, fanout.ErrAborted, "the log has its outcome")
			require.Equal(t, fanout.Aborted, op.State)
		})
	}
}

// TestSharedLogPausedOwner pauses a coordinator while another coordinator takes its operation over.
// When the first coordinator continues, it changes neither the peers nor the log.
func TestSharedLogPausedOwner(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	advancing, deleting := pauseAt("advance"), pauseAt("delete")
	defer advancing.release()
	defer deleting.release()
	log := sharedLog(t, s, &line{})
	acme := addAccount(t, coordinator(t, r, log, fanout.Options{}))
	paused := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{Identity: "them/1", LeaseTimeout: time.Hour, Observer: advancing.observer()})
	successor := coordinator(t, r, measured{sharedLog(t, s, &line{})}, fanout.Options{Identity: "me/1", LeaseTimeout: time.Hour, MaxInFlight: time.Nanosecond, Observer: deleting.observer()})
	added, aborted := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := paused.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		added <- err
	}()
	id := <-advancing.reached
	go func() {
		_, err := successor.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
		aborted <- err
	}()
	<-deleting.reached
	taken, err := log.Find(t.Context(), "operation/"+id)
	require.NoError(t, err)
	require.Contains(t, taken.Owner, "me/1")
	requests := map[string]int{}
	for _, peer := range peers {
		requests[string(peer)] = len(r.Server(peer).Requests())
	}

	advancing.release()
	_, inDoubt := errors.AsType[*fanout.InDoubtError](<-added)
	require.True(t, inDoubt, "the successor decides the outcome")
	now, err := log.Find(t.Context(), "operation/"+id)
	require.NoError(t, err)
	require.Equal(t, taken, now, "its owner alone writes it")
	for _, peer := range peers {
		require.Len(t, r.Server(peer).Requests(), requests[string(peer)], "%s: it changes nothing more", peer)
	}
	deleting.release()
	require.NoError(t, <-aborted)
	requireEnded(t, successor, log, id)
}

// requireEnded fails the test unless a recovery by owner ends the operation. Before this recovery
// the operation may be open in the log, because one of its requests may still be applied.
func requireEnded(t *testing.T, owner *fanout.Coordinator, log wal.Log, id string) {
	t.Helper()
	_, err := owner.Recover(t.Context())
	require.NoError(t, err)
	requireClean(t, owner)
	requireSettled(t, log)
	entry, err := log.Find(t.Context(), "operation/"+id)
	require.NoError(t, err)
	require.False(t, entry.Ended.IsZero())
}

// TestSharedLogChange: coordinators that share a log do not take over a change of the membership
// whose coordinator is alive. After one has taken a change over, the former owner reports the
// change as in doubt and not as aborted.
func TestSharedLogChange(t *testing.T) {
	t.Parallel()
	for name, alive := range map[string]bool{"alive": true, "taken over": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, s := servers(t, "eu-west", "us-east"), newCentral(t)
				three := some(t, r, "ap-south", "eu-west", "us-east")
				const lease = 400 * time.Millisecond
				hold, own := pauseAt("advance"), &line{}
				defer hold.release()
				working := coordinator(t, three, measured{sharedLog(t, s, own)}, fanout.Options{LeaseTimeout: lease, Identity: "them/1", Observer: hold.observer()})
				other := coordinator(t, three, measured{sharedLog(t, s, &line{})}, fanout.Options{LeaseTimeout: lease, Identity: "me/1"})
				joined := make(chan error, 1)
				go func() {
					_, err := working.Join(t.Context(), "ap-south")
					joined <- err
				}()
				<-hold.reached
				own.cut.Store(!alive) // no sign of life arrives
				var taken int
				for range 8 {
					time.Sleep(lease)
					ops, err := other.Recover(t.Context())
					require.NoError(t, err)
					taken += len(ops)
				}
				own.cut.Store(false)
				hold.release()
				if alive {
					require.Zero(t, taken)
					require.NoError(t, <-joined)
				} else {
					require.Equal(t, 1, taken)
					err := <-joined
					_, inDoubt := errors.AsType[*fanout.InDoubtError](err)
					require.True(t, inDoubt, "%v", err)
				}
				change, err := other.Join(t.Context(), "ap-south")
				require.NoError(t, err)
				require.Equal(t, alive, change.AlreadyDone)
				requireClean(t, other)
				requireSettled(t, sharedLog(t, s, &line{}))
			})
		})
	}
}
