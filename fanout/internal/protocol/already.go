// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// owner ends the strand (the state of this task) because the object y in peer owns the name. If y
// is committed and has the effect that this operation wants, the operation is already done.
func (s acquireTask) owner(peer string, y Object) {
	m := s.m
	if y.Committed() && (addJob{m}).satisfies(y) {
		m.Result.Holder, m.Result.HolderAt = y, peer
		m.Result.Reason = alreadyDone
		s.finish()
		m.Stopping = true
		return
	}
	s.heldBy(HeldByOther, peer, y)
}

// alreadyDone is the reason that leads to the ending AlreadyDone.
const alreadyDone Reason = "already done"

// satisfies reports whether the committed primary y has the effect that this operation wants.
func (j addJob) satisfies(y Object) bool {
	m := j.m
	switch {
	case m.Op.Action == Adopt:
		return false
	case m.Op.Mode == Everywhere && m.Op.Agree:
		return true
	case m.Op.Mode == Everywhere:
		return y.Revision.Digest == m.Op.Digest
	default:
		return y.Claim.Digest == m.Op.Digest && y.Claim.Target == m.Op.Target
	}
}

// alreadyDone ends an operation whose effect another operation has committed. Before that it brings
// an Everywhere object to every peer, and binds the guards of a Once object if this is a resumed
// adoption.
func (j addJob) alreadyDone() {
	m := j.m
	m.Result.Pending = nil // Pending names peers with leftovers of this operation, not of the committed one
	m.Primary = m.Result.Holder
	m.Record.Primary = Ref{Peer: m.Result.HolderAt, UID: m.Primary.UID}
	if m.Op.Mode == Once && m.Op.Action == Adopt && m.Resumed {
		m.Claims = map[string]Claimed{}
		sealJob{m}.begin()
		return
	}
	if m.Op.Mode == Once {
		m.end(AlreadyDone)
		return
	}
	m.Result.Revision = m.Primary.Revision.Number
	m.Claims = map[string]Claimed{}
	m.HaveSet = false
	bringJob{m}.begin()
}

// heldAfterAll ends an add that found the effect that it wants in a former home, which had yielded
// its place to another replica. It then found that the next home has other content, is being
// removed, or does not exist.
func (j addJob) heldAfterAll(o Object, peer string) {
	m := j.m
	m.Result.Holder, m.Result.HolderAt = o, peer
	m.Result.Reason, m.Result.Peer = HeldByOther, peer
	m.end(Aborted)
}
