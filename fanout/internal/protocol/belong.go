// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// Belonging says whether an operation of a log belongs to the ring that a coordinator
// works on.
type Belonging uint8

const (
	// Belongs: it is of this ring, or in effect nowhere. It may be settled.
	Belongs Belonging = iota
	// Unclear: a member that could show it was not read. It is left alone until then.
	Unclear
	// OfAnother: it is of another ring, or must be taken for one's of another.
	OfAnother
)

// Sighting is what the peers of a ring show of an operation.
type Sighting struct {
	Found  bool // an object or a PeerSet shows it
	Unread bool // a member was not read
}

// Belong judges an operation of a log by the ring that it was begun in. One of the first
// release does not have that: it belongs to the ring that shows it, and if effectless to
// each.
func Belong(entry, now Origin, effectless bool, seen Sighting) Belonging {
	switch {
	case entry.Known():
		if entry.Foreign(now) {
			return OfAnother
		}
		return Belongs
	case effectless, seen.Found:
		return Belongs
	case seen.Unread:
		return Unclear
	default:
		return OfAnother
	}
}

// Effectless says that an open operation is in effect nowhere, and that its recovery
// brings no effect about: no commit was sent, or its end without effect is in the log.
// That of an adoption runs it again, so it never is. undecided is that of the record that
// decides an add of the first release in a central log.
func Effectless(op Operation, record Record, state string, undecided bool) bool {
	switch {
	case op.Action == Adopt:
		return false
	case state == string(Aborted), state == string(Ended):
		return true
	case op.Central:
		return undecided
	default:
		return !record.Committing && !record.Committed
	}
}

// EffectlessChange is Effectless of a change of the membership: without a slot that it may
// have taken it is not begun any more.
func EffectlessChange(record ChangeRecord) bool { return record.Anchor == "" }

// Shows says that object o is evidence of an operation of one of these IDs, or stands
// where its log entry says that the operation's primary does.
func (o Object) Shows(record Record, ids ...string) bool {
	if uid := record.Primary.UID; uid != "" && (o.UID == uid || o.Claimed && o.Claim.Of.UID == uid) {
		return true
	}
	if !o.Claimed {
		return false
	}
	names := []string{o.Claim.Operation, o.Removal, o.Revision.Operation}
	for _, r := range o.History {
		names = append(names, r.Operation)
	}
	return slices.ContainsFunc(ids, func(id string) bool { return id != "" && slices.Contains(names, id) })
}

// Shows says that a PeerSet is evidence of a change of the membership: the change has its
// slot, or the ring knows the peer concerned as the very cluster.
func (s PeerSet) Shows(op ChangeOperation) bool {
	if id := s.Change.ID; id != "" && (id == op.ID || strings.HasPrefix(id, op.ID+"-")) {
		return true
	}
	return op.UID != "" && s.cluster(op.Peer) == op.UID
}
