// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

var endings = []protocol.Ending{
	protocol.Running, protocol.Done, protocol.Committed, protocol.AlreadyDone, protocol.Aborted, protocol.Ended, protocol.InDoubt,
}

func bools(n int) (all [][]bool) {
	for bits := range 1 << n {
		one := make([]bool, n)
		for i := range one {
			one[i] = bits&(1<<i) > 0
		}
		all = append(all, one)
	}
	return all
}

// reasons are all reasons of a Result, and none.
var reasons = []protocol.Reason{
	"", protocol.HeldByOther, protocol.GaveWay, protocol.Unreachable, protocol.Refused, protocol.Fenced, protocol.Membership,
	protocol.OtherRing, protocol.OneCluster, protocol.NoOwner, protocol.Occupied, protocol.Outdated, protocol.Missing,
	protocol.Late, protocol.LogFailed, protocol.TakenOver, protocol.Contended, protocol.Homeless, protocol.Lost,
	protocol.Departing, protocol.Suspect, protocol.Restored, protocol.UnknownOwner,
}

// TestAfterAttempt calls afterAttempt with all reasons and all combinations of its other inputs,
// and afterYielding with all combinations of its inputs. A request waits for a rival only if it
// gave way, its machine did not stop with an error, and the caller's deadline has not passed.
func TestAfterAttempt(t *testing.T) {
	for _, reason := range reasons {
		for _, b := range bools(5) {
			failed, exists, stale, earlier, expired := b[0], b[1], b[2], b[3], b[4]
			var err error
			if failed {
				err = errors.New("the machine stopped")
			}
			want := attemptOver
			if reason == protocol.LogFailed && stale && earlier {
				want = attemptTaken
			}
			if reason == protocol.LogFailed && exists {
				want = attemptLate
			}
			if reason == protocol.GaveWay && !failed && !expired {
				want = attemptYields
			}
			got := afterAttempt(protocol.Result{Reason: reason}, err, exists, stale, earlier, expired)
			require.Equal(t, want, got, "%s failed %t exists %t stale %t earlier %t expired %t", reason, failed, exists, stale, earlier, expired)
		}
	}
	for _, c := range []struct {
		keep, expired bool
		want          attemptStep
	}{{false, false, attemptNext}, {false, true, attemptOver}, {true, false, attemptTaken}, {true, true, attemptTaken}} {
		require.Equal(t, c.want, afterYielding(protocol.Result{Keep: c.keep}, c.expired))
	}
}

// An entry expires only if its operation had no effect and none of its requests can be in flight.
// For other operations fateOf does not call idle, because the first call of idle for an entry
// starts the entry's clock.
func TestFateOf(t *testing.T) {
	const limit = 5 * time.Minute
	for _, ending := range endings {
		for _, b := range bools(2) {
			for idle, expired := range map[time.Duration]bool{0: false, limit: false, limit + 1: true} {
				failed, keep := b[0], b[1]
				var err error
				want := entryEnded
				nothing := ending == protocol.Aborted || ending == protocol.Ended
				switch {
				case failed:
					err, want = errors.New("the machine stopped"), entryOpen
				case keep && nothing && expired:
					want = entryExpired
				case keep:
					want = entryKept
				}
				asked := false
				got := fateOf(protocol.Result{Ending: ending, Keep: keep}, err, func() time.Duration { asked = true; return idle }, limit)
				require.Equal(t, want, got, "%s keep %t failed %t idle %s", ending, keep, failed, idle)
				require.Equal(t, nothing && keep && !failed, asked)
			}
		}
	}
	for _, stored := range endings {
		for _, state := range []State{"", Done, Committed, Aborted, Ended, InDoubt} {
			want := (stored == protocol.Aborted || stored == protocol.Ended) && (state == Aborted || state == Ended)
			require.Equal(t, want, reported(wal.Entry{State: string(stored)}, &Operation{State: state}), "%s %s", stored, state)
			require.False(t, reported(wal.Entry{State: string(stored)}, nil))
		}
	}
}

// still returns how long an entry has kept its version: the time between the first and the last
// read of this version, on the observer's own clock.
func TestWatched(t *testing.T) {
	begin := time.Now()
	at := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Second) }
	var w watched
	for _, c := range []struct {
		version string
		at      int
		still   time.Duration
	}{{"1", 0, 0}, {"1", 5, 5 * time.Second}, {"2", 6, 0}, {"2", 9, 3 * time.Second}, {"1", 10, 0}} {
		w = w.see(c.version, at(c.at))
		require.Equal(t, c.still, w.still(), "%+v", c)
	}
	require.Zero(t, watched{}.see("", at(0)).still(), "an entry without a version is first seen, too")
}
