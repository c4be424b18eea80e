// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

// attemptStep is the next step after one attempt at a request.
type attemptStep uint8

const (
	attemptOver   attemptStep = iota // return the result
	attemptLate                      // another call took the idempotency key first: submit again, to return its result
	attemptTaken                     // this log entry cannot be used any further: submit again, under another entry
	attemptYields                    // an older rival holds the name: wait for it, without a reservation
	attemptNext                      // the rival is gone: try again under the same log entry
)

// afterAttempt returns the next step after an attempt. err is why the attempt could not be carried
// out. exists and stale report that the log failed with wal.ErrExists or wal.ErrStale, earlier that
// this was not the first attempt, and expired that the caller's deadline has passed.
func afterAttempt(result protocol.Result, err error, exists, stale, earlier, expired bool) attemptStep {
	switch {
	case result.Reason == protocol.LogFailed && exists:
		return attemptLate
	case result.Reason == protocol.LogFailed && stale && earlier:
		// While the earlier attempt waited for a rival, another coordinator took the entry over
		// and settled that attempt.
		return attemptTaken
	case result.Reason == protocol.GaveWay && err == nil && !expired:
		return attemptYields
	default:
		return attemptOver
	}
}

// afterYielding returns the next step after the wait for an older rival.
func afterYielding(result protocol.Result, expired bool) attemptStep {
	switch {
	case result.Keep:
		// A request of this attempt may be applied later, so the attempt's entry stays. The request
		// continues under another entry, and keeps the start time of its first attempt.
		return attemptTaken
	case expired:
		return attemptOver
	default:
		return attemptNext
	}
}

// entryFate is what recovery does with the log entry of an operation.
type entryFate uint8

const (
	entryOpen    entryFate = iota // the operation could not be recovered: the next recovery tries again
	entryEnded                    // the recovery ended the entry
	entryKept                     // the entry stays, and recoverFirst skips it for a lease
	entryExpired                  // the operation had no effect, and no request of it can be in flight: end the entry
)

// fateOf returns the fate of a recovered operation's entry. The function idle returns the age of
// the entry (see entries.idle); fateOf calls it only for an operation without effect. No request is
// in flight for longer than maxInFlight.
func fateOf(result protocol.Result, err error, idle func() time.Duration, maxInFlight time.Duration) entryFate {
	nothing := result.Ending == protocol.Aborted || result.Ending == protocol.Ended
	switch {
	case err != nil:
		return entryOpen
	case !result.Keep:
		return entryEnded
	case nothing && idle() > maxInFlight:
		return entryExpired
	default:
		return entryKept
	}
}

// reported returns true if an earlier recovery has already reported the operation: the log has
// stored that the operation ended without effect, and it still has no effect.
func reported(entry wal.Entry, operation *Operation) bool {
	return cameToNothing(entry) && operation != nil && (operation.State == Aborted || operation.State == Ended)
}
