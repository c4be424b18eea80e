// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// Belonging is the relation between an operation of a log and the ring (the set of peers) that a
// coordinator works on.
type Belonging uint8

const (
	// Belongs: the operation is of this ring, or has no effect anywhere. Recovery may finish or undo it.
	Belongs Belonging = iota
	// Unclear: a member that could show the operation was not read. Leave the operation alone until
	// that member has been read.
	Unclear
	// OfAnother: the operation is of another ring, or must be treated as one of another ring.
	OfAnother
)

// Sighting states whether the peers of a ring show an operation, and whether all members were read.
type Sighting struct {
	Found  bool // an object or a PeerSet shows the operation
	Unread bool // a member was not read
}

// Belong returns the relation between an operation of a log and the ring of the configured peers.
// entry is the Origin that the operation's log entry stores, now is the Origin of the ring. An
// entry of the first release stores no ring. Its operation belongs to each ring whose peers show
// the operation and, if the operation is effectless, to every ring.
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

// Effectless reports whether an open operation (whose entry is still in the log) has no effect
// anywhere and its recovery gives it none: no commit was sent, or the log has recorded its end
// without effect. The result is false for an adoption, because recovery runs an adoption again. An
// add of the first release may be decided by a record in a central log. Then the result is
// undecided: the caller sets it if that record is not committed yet.
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

// EffectlessChange reports whether an open change of the membership has no effect anywhere and its
// recovery gives it none. This is the case if the change cannot have taken a slot (the lock in a
// PeerSet that a change must hold). Recovery does not begin such a change.
func EffectlessChange(record ChangeRecord) bool { return record.Anchor == "" }

// Shows reports whether object o shows an operation of the log: o names an operation with one of
// ids, or o is the primary in record, or a secondary of this primary.
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

// Shows reports whether PeerSet s shows the change op of the membership: an attempt of op holds the
// slot of s, or s knows the peer concerned as the cluster with the UID op.UID.
func (s PeerSet) Shows(op ChangeOperation) bool {
	if id := s.Change.ID; id != "" && (id == op.ID || strings.HasPrefix(id, op.ID+"-")) {
		return true
	}
	return op.UID != "" && s.cluster(op.Peer) == op.UID
}
