// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// A peer that was restored from a backup answers from an older state: what it does
// not hold may have been committed there. So a secondary that was written after the
// commit is evidence, and nothing that its primary's peer says or does not say
// makes it dead.

// Evidence says that secondary o proves the commit of its primary: a guard that was
// bound after it, or a replica in force, unless it is being deleted. A claim under a
// central log is bound while its target may still be Reserved, so it proves nothing.
func (o Object) Evidence(mode Mode) bool {
	if !o.Claimed || o.Terminating || o.Primary(mode) {
		return false
	}
	if mode == Once {
		return o.Bound != (Ref{}) && o.Claim.Record == ""
	}
	return o.Stage == Active && !o.Home.Yielded && !o.former(mode)
}

// contradicted is the verdict on evidence whose primary is not committed where it
// was: the object is lost until its peer has come back or a person decides.
func (o Object) contradicted(mode Mode, v verdict) verdict {
	if o.Evidence(mode) && !o.Released {
		return lost
	}
	return v
}

// verdict judges secondary x, from the reply to a read of its primary.
func (m *Machine) verdict(x Object, r Reply) verdict {
	v := judge(m.Op.Mode, x, r)
	if v == lost && m.Op.Doubted != "" && x.Claim.Peer == m.Op.Doubted {
		x.Released = true
		return judge(m.Op.Mode, x, r)
	}
	return v
}

// passing says that this is not the change that brings the primary's peer back. Between
// its read of the primary's PeerSet and that of the primary the peer may have been
// restored: before it makes evidence of what it read it asks for the PeerSet once more.
func (m *Machine) passing() bool { return m.Op.Doubted == "" }

// evidence says whether x proves the commit of its primary.
func (m *Machine) evidence(x Object) bool {
	return x.Evidence(m.Op.Mode) && !x.Released && (m.Op.Doubted == "" || x.Claim.Peer != m.Op.Doubted)
}

// later says whether revision r was made after o. Operation IDs are ordered by
// time; an edit has none, so its number has to do.
func (r Revision) later(o Revision) bool {
	if r.Operation == o.Operation || !r.timed() || !o.timed() {
		return r.Number > o.Number
	}
	return r.Operation > o.Operation
}

// timed says whether the operation's ID tells when it began.
func (r Revision) timed() bool {
	return r.Operation != EditOperation && !strings.HasPrefix(r.Operation, adoptionPrefix)
}
