// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// observe counts in Quiet how often in succession the primary of a rival (another operation on the
// name), or its record, was read without a change.
func (s *Strand) observe(uid, rv string) {
	if seen := uid + "@" + rv; seen != s.Seen {
		s.Seen, s.Quiet = seen, 0
	} else {
		s.Quiet++
	}
}

// rival decides about y, the pending primary of another operation in peer. If y has not changed for
// one lease, rival deletes it (fences it). Until then this operation waits if it is older or an
// adoption; otherwise it fails with GaveWay. A stopping or expired operation neither deletes nor waits.
func (s acquireTask) rival(peer string, y Object) {
	m := s.m
	s.Y = y
	s.observe(y.UID, y.RV)
	mine := rival{m.Op.Start, m.Op.ID}
	switch {
	case s.Quiet >= m.Op.Lease && !m.Stopping && !m.Expired:
		s.send(stepFence, deleteObject(peer, y))
	case m.Op.Action != Adopt && !mine.olderThan(rival{y.Claim.Start, y.Claim.Operation}):
		s.heldBy(GaveWay, peer, y)
	case m.Stopping || m.Expired:
		s.heldBy(HeldByOther, peer, y)
	default:
		s.pause(stepReread)
	}
}
