// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import "context"

// Decider is a Log that several programs share, each of whose entries can be the decision about its operation: an entry
// that is proposed is either decided or withdrawn, once and for all, by whoever is first. Open, Find, Advance and End
// work on such entries as on others; to End one that is not decided withdraws it.
type Decider interface {
	Log

	// Propose is Begin for an entry that is undecided.
	Propose(ctx context.Context, e Entry) (Entry, Decision, error)

	// Decide makes the proposed entry e.ID decided, for the object uid in the place target, if e.Version is still the
	// stored one. Otherwise it returns ErrStale, together with what is stored; ErrNotFound if the entry is gone. If it
	// cannot be known whether it was decided, the error is another one.
	Decide(ctx context.Context, e Entry, target, uid string) (Entry, Decision, error)

	// Withdraw ends the proposed entry of d.ID for ever, with outcome, if it is still the one that d shows, at the same
	// Version and undecided. It is by anybody. Otherwise it returns ErrStale, or ErrNotFound if it is gone or ended.
	Withdraw(ctx context.Context, d Decision, outcome []byte) error

	// Decision reads what is decided about the operation id from a quorum. It is ErrNotFound if there is no such entry
	// or if it has ended: what an ended entry is remembered for is not a decision any more.
	Decision(ctx context.Context, id string) (Decision, error)
}

// Decision is what a proposed entry says.
type Decision struct {
	ID      string // of the entry
	UID     string // of this incarnation of it: no later entry of the same ID has it
	Version string // as Entry.Version
	Owner   string // who works on it
	Decided bool
	// Target and TargetUID are where the object is that was decided for, and which.
	Target, TargetUID string
}

// Validate says what of an Entry no Log takes, as a [*FieldError].
func (e Entry) Validate() error { return e.validate() }
