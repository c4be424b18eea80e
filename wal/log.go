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

// Log remembers operations from before their first effect until their end is proved. It knows nothing of peers.
//
// All methods block for as long as storage needs and are safe for concurrent use. A context that ends before storage
// has taken up the call makes it return the context's error, and nothing changed. A change that may or may not have been
// stored is an ErrInDoubt; a Log may return ErrClosed from then on, until it is reopened. waltest.Run states these rules
// as tests.
//
// # Exclusive and shared
//
// A Log is exclusive to one coordinator or shared by several, and Shared reports which. It decides whose entries a
// recovery may touch:
//
//   - Exclusive: one handle at a time. To open it a second time fails until the first handle is closed or its process
//     has ended, so the coordinator that has it open owns all open entries and may settle those that it does not work on.
//   - Shared: any number of handles, in any number of processes. An open entry may belong to a living coordinator, which
//     Entry.Owner names. Each Advance, also one that changes nothing, gives the entry a new Version: that is its owner's
//     sign of life. To take an entry over, a coordinator writes itself into Owner by Advance and acts only after that
//     succeeded. From then on each Advance and End of the former owner returns ErrStale and changes nothing.
//
// A wrapper must forward Shared. One that embeds the Log it wraps does so by itself.
type Log interface {
	// Shared reports whether several coordinators may use the log at once, each by a handle of its own. It does no I/O
	// and always returns the same.
	Shared() bool

	// Begin makes e durable before it returns nil, and returns it with Version set (and Began, if that was zero).
	// If the ID or the non-empty Key is known, it returns ErrExists together with the stored Entry, which may have
	// ended. Errors: ErrExists, *FieldError, *CorruptError, *InDoubtError, ErrClosed.
	Begin(ctx context.Context, e Entry) (Entry, error)

	// Advance replaces State, Owner and Data of the open entry e.ID if e.Version is still the stored one, and
	// returns the entry with its new Version. Otherwise it returns ErrStale together with the stored Entry, and
	// nothing changed. An entry that has ended is stale, one that was never begun is ErrNotFound.
	Advance(ctx context.Context, e Entry) (Entry, error)

	// End removes e from the open entries and keeps outcome under its ID and Key for the retention time. It returns
	// ErrStale if e.Version is not the stored one. It may be lost in a crash (the entry is then open again), and is
	// never reordered before an earlier call. It is idempotent: to end what has ended, or what is unknown, changes
	// nothing and returns nil; the first outcome stays.
	End(ctx context.Context, e Entry, outcome []byte) error

	// Open yields the open entries, oldest first (in order of ID). A damaged one yields a *CorruptError with what is
	// known of it and the iteration goes on: corrupt is not absent. Any other error is the last thing it yields.
	// Entries that are begun or ended during the iteration may be missing or not.
	Open(ctx context.Context) iter.Seq2[Entry, error]

	// Find returns the open or remembered entry of an idempotency key, or ErrNotFound.
	Find(ctx context.Context, key string) (Entry, error)

	// Decision returns, from a quorum, what the record of the operation id decides that the first release began in this
	// log, until that record has ended. It is ErrNotFound if there is no such record, and ErrNoDecisions if the log has
	// never held any: then the record may be in another log. No new entry decides anything.
	Decision(ctx context.Context, id string) (Decision, error)
}

// Entry is one operation. It is plain data; a Log copies what it takes and what it returns.
type Entry struct {
	ID    string    // unique, ordered by time; 1 to MaxID bytes
	Kind  string    // which code can read Data
	Key   string    // idempotency key, may be empty
	Owner string    // who works on it; in an exclusive Log it decides nothing
	State string    // short word for people and lists
	Data  []byte    // the caller's, at most MaxData bytes
	Began time.Time // for people; nothing is decided by it

	// Version is set by the Log and opaque: the token of compare-and-swap. Pass on what the last call returned.
	Version string
	// Outcome is what End was given. It is set by the Log and meaningless while Ended is zero.
	Outcome []byte
	// Ended is set by the Log when the entry ends, and zero before. The retention time counts from it.
	Ended time.Time
}
