// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"github.com/atoll-dev/atoll/region"
)

// State is the state of an operation.
type State string

const (
	// Reserving: it holds the name in some peers and is not committed. Only explanations and
	// traces have this state, no returned Operation.
	Reserving State = "Reserving"
	// Committed: it is in effect and cannot be undone, but not every peer has confirmed yet.
	// Recovery or a sweep rolls it forward.
	Committed State = "Committed"
	// Done: committed, and every peer has confirmed.
	Done State = "Done"
	// Aborted: it never took effect and never will.
	Aborted State = "Aborted"
	// Ended: it is not in effect now, but may have been for a while.
	Ended State = "Ended"
	// InDoubt: it is not known yet whether it took effect.
	InDoubt State = "InDoubt"
)

// PeerState is the result of an operation in one peer.
type PeerState string

const (
	// PeerPrimary: the peer holds the object itself.
	PeerPrimary PeerState = "Primary"
	// PeerGuard: the peer holds a guard of the name.
	PeerGuard PeerState = "Guard"
	// PeerReplica: the peer holds a replica in effect.
	PeerReplica PeerState = "Replica"
	// PeerGone: the peer holds nothing of the name.
	PeerGone PeerState = "Gone"
	// PeerUnchanged: the operation did not change this peer.
	PeerUnchanged PeerState = "Unchanged"
	// PeerPending: the peer has not confirmed yet, or, while the operation is in doubt, its
	// state is not known. For an add without effect: the peer did not answer or is no longer
	// configured, so a dead reservation may be left there. The next Recover or sweep that
	// reaches the peer deletes it, or the peer's join.
	PeerPending PeerState = "Pending"
)

// Operation is the state of one fan-out.
type Operation struct {
	// ID names the operation in the log and in errors. Claims have it, too, unless the request
	// gave way to an older one and was tried again.
	ID string
	// State is the state of the operation.
	State State
	// Primary is the peer of the primary.
	Primary region.PeerName
	// Revision is the number of the revision that the operation committed, for kinds that exist
	// everywhere.
	Revision int64
	// Durable reports whether every other member holds evidence of the commit: a guard that is
	// bound to it, or a replica in effect. A durable commit is not lost without a report if a
	// peer is restored from an older state. Add of a kind that exists once returns at the
	// commit and makes it durable in the background: AddOptions.Durable waits for that,
	// Observer.Durable reports it.
	Durable bool
	// AlreadyDone is set if an earlier operation had the same effect, so that this one changed
	// nothing.
	AlreadyDone bool
	// Peers are the results by peer. A peer that has not confirmed has Err set.
	Peers region.Results[PeerState]
}
