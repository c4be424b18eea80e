// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// A peer that was restored from a backup replies from an older state: an object that it lacks
// may have been committed there. So a secondary that was written after the commit is evidence of
// the commit. It is not deleted only because its primary's peer lacks the primary.

// Evidence reports whether secondary o proves the commit of its primary. A bound guard (its Bound is
// set) proves it, and so does an Active replica. Exceptions: an object that is being deleted, a
// replica that was home and has our finalizer, and a replica whose Home is Yielded, because the
// object that it names may not be home yet, prove nothing. A guard of an add of the first release
// proves nothing either, because it may be bound while the object in the target is Reserved.
func (o Object) Evidence(mode Mode) bool {
	if !o.Claimed || o.Terminating || o.Primary(mode) {
		return false
	}
	if mode == Once {
		return o.Bound != (Ref{}) && o.Claim.Record == ""
	}
	return o.Stage == Active && !o.Home.Yielded && !o.former(mode)
}

// contradicted returns the verdict on secondary o, whose primary is missing or not committed. The
// verdict is lost if o is evidence and no person has released it, and v otherwise.
func (o Object) contradicted(mode Mode, v verdict) verdict {
	if o.Evidence(mode) && !o.Released {
		return lost
	}
	return v
}

// verdict judges secondary x. r is the reply to a read of its primary. A secondary in the newcomer
// Op.Doubted proves nothing, so its verdict is never lost.
func (m *Machine) verdict(x Object, r Reply) verdict {
	v := judge(m.Op.Mode, x, r)
	if v == lost && m.Op.Doubted != "" && x.Claim.Peer == m.Op.Doubted {
		x.Released = true
		return judge(m.Op.Mode, x, r)
	}
	return v
}

// passing reports whether this operation is no part of a join or rejoin. Such an operation reads
// the PeerSet of the primary's peer once more before it creates evidence: the peer may have been
// restored between the reads of its PeerSet and of the primary.
func (m *Machine) passing() bool { return m.Op.Doubted == "" }

// evidence reports whether x proves the commit of its primary. An object that a person has
// released, and an object in the newcomer Op.Doubted, prove nothing.
func (m *Machine) evidence(x Object) bool {
	return x.Evidence(m.Op.Mode) && !x.Released && (m.Op.Doubted == "" || x.Claim.Peer != m.Op.Doubted)
}

// later reports whether revision r was made after o. If both revisions are of operations whose IDs
// are ordered by time, the IDs decide. The revision numbers decide if a revision is of an edit or
// an adoption, or if both are of one operation.
func (r Revision) later(o Revision) bool {
	if r.Operation == o.Operation || !r.timed() || !o.timed() {
		return r.Number > o.Number
	}
	return r.Operation > o.Operation
}

// timed reports whether the operation's ID shows when it began.
func (r Revision) timed() bool {
	return r.Operation != EditOperation && !strings.HasPrefix(r.Operation, adoptionPrefix)
}
