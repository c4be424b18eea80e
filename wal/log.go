// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"iter"
	"time"
)

// Limits of an Entry. Longer values are refused with a [*FieldError].
const (
	MaxID      = 256      // bytes of ID
	MaxKey     = 1024     // bytes of Key
	MaxName    = 256      // bytes of Kind, Owner and State each
	MaxData    = 1 << 20  // bytes of Data
	MaxOutcome = 64 << 10 // bytes of the outcome
)

// Log records operations from before their first effect until their end is proved. It knows nothing of peers.
//
// All methods block for as long as storage needs and are safe for concurrent use. If the context ends before the
// storage has begun to process the call, the call returns the context's error, and nothing has changed. If it is
// unknown whether a change was stored, the call returns ErrInDoubt; from then on a Log may return ErrClosed, until
// it is reopened. waltest.Run tests the rules that can be observed without a fault.
//
// # Exclusive and shared
//
// A Log is exclusive to one coordinator or shared by several; Shared reports which of the two. This determines
// which entries a recovery may change:
//
//   - Exclusive: one handle at a time. A second open fails until the first handle is closed or its process has
//     ended. So the coordinator that has the log open owns all open entries and may settle those that it does not
//     work on.
//   - Shared: any number of handles, in any number of processes. An open entry may belong to a living coordinator,
//     which Entry.Owner names. Each Advance, even one that changes nothing, gives the entry a new Version, which is
//     its owner's heartbeat. To take an entry over, a coordinator writes its own name into Owner by Advance and
//     acts only after this call has succeeded. From then on each Advance and End of the former owner returns
//     ErrStale and changes nothing.
//
// A wrapper must forward Shared. A wrapper that embeds the wrapped Log does so implicitly.
type Log interface {
	// Shared reports whether several coordinators may use the log at once, each with its own handle. It does no I/O
	// and its result never changes.
	Shared() bool

	// Begin makes e durable before it returns nil. It returns e with Version set (and Began, if that was zero). If
	// the ID or the non-empty Key is known, it returns ErrExists together with the stored Entry, which may have
	// ended. Errors: ErrExists, *FieldError, *CorruptError, ErrInDoubt, ErrClosed.
	Begin(ctx context.Context, e Entry) (Entry, error)

	// Advance replaces State, Owner and Data of the open entry e.ID if e.Version is still the stored version, and
	// returns the entry with its new Version. Otherwise it returns ErrStale together with the stored Entry, and
	// changes nothing. It returns ErrStale for an entry that has ended, and ErrNotFound for an unknown entry.
	Advance(ctx context.Context, e Entry) (Entry, error)

	// End removes e from the open entries and keeps outcome under e's ID and Key for the retention time. It returns
	// ErrStale if e.Version is not the stored version. A crash may undo an End: the entry is then open again. If the
	// End is still stored after a crash, all earlier calls are stored too. End is idempotent: for an ended or unknown
	// entry it changes nothing and returns nil; the first outcome is kept.
	End(ctx context.Context, e Entry, outcome []byte) error

	// Open yields the open entries, oldest first (in order of ID). For a damaged entry it yields the known fields
	// with a *CorruptError, and the iteration continues: corrupt does not mean absent. Any other error ends the
	// iteration. Entries that are begun or ended during the iteration may or may not be yielded.
	Open(ctx context.Context) iter.Seq2[Entry, error]

	// Find returns the open or ended entry with an idempotency key, or ErrNotFound.
	Find(ctx context.Context, key string) (Entry, error)

	// Decision returns the decision in the record of the operation id, read from a quorum. Such a record exists if the
	// first release began the operation in this log, and the record has not ended. Without a record, Decision returns
	// ErrNotFound. A log that can never have held such a record returns ErrNoDecisions: then the record may be in
	// another log. New entries have no decision.
	Decision(ctx context.Context, id string) (Decision, error)
}

// Entry is one operation. It is plain data; a Log copies its arguments and results.
type Entry struct {
	ID    string    // unique, ordered by time; 1 to MaxID bytes
	Kind  string    // selects the code that reads Data
	Key   string    // idempotency key, may be empty
	Owner string    // the coordinator that works on the entry; not used by an exclusive Log
	State string    // short word for people and lists
	Data  []byte    // opaque to the Log; at most MaxData bytes
	Began time.Time // information for people

	// Version is set by the Log and opaque. It is the token of compare-and-swap: pass the Version that the last
	// call returned.
	Version string
	// Outcome is the argument of End. It is set by the Log and meaningless while Ended is zero.
	Outcome []byte
	// Ended is set by the Log when the entry ends, and zero before. The retention time starts at Ended.
	Ended time.Time
}
