// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// judgeRecord is judgeLeftovers for a central add. A claim that it leaves without
// a word is dead as soon as its record is gone, and so is one that a late create
// makes, so that claims and creates need no entry that outlives the operation;
// but a record that is pending would let its claims stand in everybody's way. A
// record that a late request to begin makes is its own entry, and one that
// somebody has adopted is his to see to.
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

// judgeClaim tells of a claim that is made before the central log has answered
// for its record. What else a central add writes comes after the claims, so that
// it needs no test like that of an entry; nor does a crash, since whoever crashed
// is always recovered by its record.
func (w *world) judgeClaim(m message) {
	p := w.procs[m.proc]
	if p.m == nil || m.orphan || !p.m.central() || p.m.Phase != claiming || m.cmd.Verb != Create {
		return
	}
	if m.cmd.Object.Claim.Record == "" {
		w.fault("I8: a claim before the log has its record")
	}
}
