// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// rival decides about a pending primary y of another operation in peer. Once y's lease is
// over, the strand fences it. Until then the older of the two operations waits and the
// younger gives way.
func (m *Machine) rival(i int, peer string, y Object) {
	s := &m.Strands[i]
	s.Y = y
	if y.UID+"@"+y.RV != s.Seen {
		s.Seen, s.Quiet = y.UID+"@"+y.RV, 0
	} else {
		s.Quiet++
	}
	mine := rival{m.Op.Start, m.Op.ID}
	switch {
	case s.Quiet >= m.Op.Lease && !m.Stopping && !m.Expired:
		m.send(i, "fence", Command{Verb: Delete, Peer: peer, UID: y.UID, RV: y.RV})
	case m.Op.Action != Adopt && !mine.olderThan(rival{y.Claim.Start, y.Claim.Operation}):
		m.heldBy(i, GaveWay, peer, y)
	case m.Stopping || m.Expired:
		m.heldBy(i, HeldByOther, peer, y)
	default:
		m.pause(i, "reread")
	}
}
