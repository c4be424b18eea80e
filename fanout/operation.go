// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"github.com/atoll-dev/atoll/region"
)

// State says how far an operation has come.
type State string

const (
	// Reserving: it holds the name in some peers and is not committed. Only
	// what is found in the peers is in this state, no Operation that was
	// returned.
	Reserving State = "Reserving"
	// Committed: it is in effect and cannot be undone, but not every peer has
	// confirmed yet. It goes on by itself.
	Committed State = "Committed"
	// Done: committed, and every peer has confirmed.
	Done State = "Done"
	// Aborted: it never took effect and never will.
	Aborted State = "Aborted"
	// Ended: it is not in effect now, perhaps was for a while.
	Ended State = "Ended"
	// InDoubt: whether it took effect cannot be known yet.
	InDoubt State = "InDoubt"
)

// PeerState says what an operation left in one peer.
type PeerState string

const (
	// PeerPrimary: the object itself stands here.
	PeerPrimary PeerState = "Primary"
	// PeerGuard: a guard keeps the name.
	PeerGuard PeerState = "Guard"
	// PeerReplica: the object's content is in force here.
	PeerReplica PeerState = "Replica"
	// PeerGone: nothing of the name is left here.
	PeerGone PeerState = "Gone"
	// PeerUnchanged: the operation left this peer as it was.
	PeerUnchanged PeerState = "Unchanged"
	// PeerPending: the peer has not confirmed, and will be brought along; or,
	// while the operation is in doubt, what it holds is not known. Of an add that
	// came to nothing: its reservation may be left in the peer, which did not
	// answer or is not configured here any more. It is dead, and goes with the next
	// Recover or sweep that reaches the peer, or as the peer joins.
	PeerPending PeerState = "Pending"
)

// Operation is one fan-out as it stands.
type Operation struct {
	// ID names the operation in the log and in errors. Claims name it too,
	// unless the request gave way to an older one and was tried again.
	ID string
	// State says how far it has come.
	State State
	// Primary is the peer of the object that decides.
	Primary region.PeerName
	// Revision is the number of the content that the operation committed, for
	// kinds that exist everywhere.
	Revision int64
	// Durable says that every other member was seen to hold evidence of the commit: a
	// guard that is bound to it, or a replica in force. What is durable is not lost
	// without a report if a peer is restored from an older state. Add of a kind
	// that exists once returns at the commit and makes it durable at once after it,
	// without the caller: AddOptions.Durable waits for that, Observer.Durable tells.
	Durable bool
	// AlreadyDone says that an earlier operation had the same effect, so that
	// this one changed nothing.
	AlreadyDone bool
	// Peers are the outcomes by peer. One that has not confirmed has Err set.
	Peers region.Results[PeerState]
}
