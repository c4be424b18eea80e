// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

// attemptStep is what follows from one attempt at a request.
type attemptStep uint8

const (
	attemptOver   attemptStep = iota // it is the answer
	attemptLate                      // another call with the idempotency key was faster: begin anew, and get its answer
	attemptTaken                     // its log entry is gone, or is kept for what may yet appear: begin anew under another
	attemptYields                    // an older rival holds the name: wait for it, holding nothing
	attemptNext                      // the rival is gone: once more under the same log entry
)

// afterAttempt decides what follows from an attempt: err is why it could not be carried
// through, exists and stale are how the log failed, earlier says that it was not the first,
// and expired that the caller's time is over.
func afterAttempt(result protocol.Result, err error, exists, stale, earlier, expired bool) attemptStep {
	switch {
	case result.Reason == protocol.LogFailed && exists:
		return attemptLate
	case result.Reason == protocol.LogFailed && stale && earlier:
		// While it gave way another coordinator took the entry over and settled the
		// attempt before.
		return attemptTaken
	case result.Reason == protocol.GaveWay && err == nil && !expired:
		return attemptYields
	default:
		return attemptOver
	}
}

// afterYielding decides what follows once an older rival was awaited.
func afterYielding(result protocol.Result, expired bool) attemptStep {
	switch {
	case result.Keep:
		// Something of this attempt may yet appear, so its entry stays. The request goes on
		// under another one, as old as before.
		return attemptTaken
	case expired:
		return attemptOver
	default:
		return attemptNext
	}
}

// entryFate is what becomes of the log entry of an operation that was recovered as far as
// can be.
type entryFate uint8

const (
	entryOpen    entryFate = iota // it could not be carried through: the next recovery tries again
	entryEnded                    // the recovery ended it
	entryKept                     // it stays, and is left alone for a lease
	entryExpired                  // it came to nothing, and nothing of it can be on its way any more: end it
)

// fateOf decides about the entry of a recovered operation. idle is how long ago it was
// begun; it is asked only of one that came to nothing.
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

// reported says that an operation which is recovered again was reported before: the log had
// its ending without effect, and it has it still.
func reported(entry wal.Entry, operation *Operation) bool {
	return cameToNothing(entry) && operation != nil && (operation.State == Aborted || operation.State == Ended)
}
