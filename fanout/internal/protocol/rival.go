// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// observe counts in Quiet how often the rival's primary, or its record, was read without a change.
func (s *Strand) observe(uid, rv string) {
	if seen := uid + "@" + rv; seen != s.Seen {
		s.Seen, s.Quiet = seen, 0
	} else {
		s.Quiet++
	}
}

// rival decides about a pending primary y of another operation in peer. Once y's lease is over, the
// strand fences y. Until then the older of the two operations waits and the younger gives way; an
// adoption always waits.
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
