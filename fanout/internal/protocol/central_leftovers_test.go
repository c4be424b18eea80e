// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// judgeRecord does for a central add what judgeLeftovers does for other operations. A pending
// record that stays is a fault, since its claims obstruct the name. A claim that stays, or that a
// late create makes, is no fault: it is dead once its record is gone, so it needs no log entry. A
// record from a late create is its own log entry, and an adopted record is settled by its adopter.
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
