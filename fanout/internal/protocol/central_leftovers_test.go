// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// judgeRecord does for a central add (one that a record in a central log decides) what judgeLeftovers
// does for other operations. An add that is not committed must not leave its record, since the
// record's claims keep the name taken. It may leave a claim, even by a late create: once the record
// is gone, the claim does not hold the name. It may also leave a record that a late create makes,
// which recovery finds as a log entry, and a record that an adopter has taken over and settles.
func (w *world) judgeRecord(p *proc) {
	r, d := p.m.Result, p.m.Decision
	if r.Ending == Done || r.Ending == Committed || d.UID == "" {
		return
	}
	i := w.store.find(p.op.ID)
	if i >= 0 && !w.store.records[i].history && w.store.records[i].d.UID == d.UID && w.store.records[i].holder == p.holds(slices.Index(w.procs, p)) {
		w.fault("I8: " + p.op.ID + " left its record")
	}
}

// judgeClaim reports a claim that is created before the central log has acknowledged the
// record. The other writes of a central add come after its claims and need no such check. A
// crash needs no check either, since a crashed add is always recovered by its record.
func (w *world) judgeClaim(m message) {
	p := w.procs[m.proc]
	if p.m == nil || m.orphan || !p.m.central() || p.m.Phase != claiming || m.cmd.Verb != Create {
		return
	}
	if m.cmd.Object.Claim.Record == "" {
		w.fault("I8: a claim before the log has its record")
	}
}
