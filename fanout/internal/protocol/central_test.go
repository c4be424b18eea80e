// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// record models a record of the central log, which decides one add of the first release.
type record struct {
	op string
	d  Decision
	// history: the record has ended and still occupies its name.
	history bool
	// holder is the process that works on the record: 0 is the record's creator, 1 + i is process
	// i, an adopter.
	holder int
}

// central makes p an add of the first release, decided in the central log.
func central(p plan) plan {
	p.op.Central = true
	return p
}

// onRecord reports whether c goes to the central log.
func (c Command) onRecord() bool {
	switch c.Verb {
	case Propose, ReadRecord, Decide, Withdraw:
		return true
	}
	return c.Verb == Forget && c.Record != ""
}

func (s *store) find(op string) int {
	return slices.IndexFunc(s.records, func(r record) bool { return r.op == op })
}

// applyRecord carries out a command on the central log. It returns the reply, and the rule that the
// command breaks or "". retained keeps ended records as history.
func (s *store) applyRecord(c Command, retained bool) (Reply, string) {
	i := s.find(c.Record)
	yes := func(d Decision) Reply { return Reply{Class: Applied, Code: OK, Decision: &d} }
	if c.Verb == Propose {
		if i >= 0 {
			return refused(Exists), ""
		}
		s.uids++
		d := Decision{UID: "u" + strconv.Itoa(s.uids), RV: s.rv()}
		if s.named {
			d.UID = "rec-" + c.Record
		}
		s.records = append(s.records, record{op: c.Record, d: d})
		slices.SortFunc(s.records, func(a, b record) int { return strings.Compare(a.op, b.op) })
		return yes(d), ""
	}
	if c.Verb == Decide && i < 0 && s.upsert {
		s.records = append(s.records, record{op: c.Record, d: Decision{UID: c.UID, RV: c.RV}})
		i = len(s.records) - 1
	}
	if i < 0 || s.records[i].history {
		return refused(NotFound), ""
	}
	r := s.records[i]
	if c.Verb == ReadRecord {
		return yes(r.d), ""
	}
	var broken string
	if c.UID == "" || c.RV == "" {
		broken = "I5: a write of a record without preconditions"
	}
	if s.blind {
		broken = ""
	}
	if c.UID != "" && c.UID != r.d.UID || c.RV != "" && c.RV != r.d.RV {
		return refused(Conflict), broken
	}
	switch c.Verb {
	case Decide:
		switch {
		case r.d.Committed && r.d.Of != c.Object.Bound:
			broken = "rule: a decision does not change"
		case c.Object.Bound.UID == "":
			broken = "rule: a decision names the target's UID"
		}
		r.d.Committed, r.d.Of, r.d.RV = true, c.Object.Bound, s.rv()
		s.records[i] = r
		return yes(r.d), broken
	case Withdraw:
		if r.d.Committed && !s.blind {
			broken = "rule: a committed record is withdrawn"
		}
	case Forget:
		if !r.d.Committed && !s.blind {
			broken = "rule: a pending record is forgotten"
		}
	}
	if retained {
		s.records[i].history = true
		s.rvs++
	} else {
		s.records = slices.Delete(s.records, i, i+1)
	}
	return Reply{Class: Applied, Code: OK}, broken
}

// carryRecord applies message m to the central log, as carry does to a peer.
func (w *world) carryRecord(m message) Reply {
	if s := w.early(m.cmd); s != "" {
		w.fault(s)
	}
	r, broken := w.store.applyRecord(m.cmd, w.cfg.retained)
	if p := w.procs[m.proc]; r.Decision != nil && m.cmd.Record == p.op.ID && !m.orphan {
		r.Decision.Taken = w.store.records[w.store.find(p.op.ID)].holder != p.holds(m.proc)
	}
	if broken != "" {
		w.fault(broken)
	}
	if r.Class == Applied && m.cmd.Verb == Decide {
		if slices.Contains(w.committed, m.cmd.Record) && !w.store.upsert {
			w.fault("TWICE: " + m.cmd.Record + " is committed again")
		}
		w.note(m.cmd.Record)
	}
	return r
}

// early returns a violation if c ends a record whose object is not in effect yet.
func (w *world) early(c Command) string {
	i := w.store.find(c.Record)
	if c.Verb != Forget || i < 0 || w.store.records[i].history || w.store.records[i].d.RV != c.RV {
		return ""
	}
	of := w.store.records[i].d.Of
	if at := w.store.index(of.Peer); at >= 0 && w.member(at) {
		if o := w.store.cells[at].obj; o != nil && o.UID == of.UID && o.Stage == Reserved {
			return "I3: the record of " + c.Record + " ends before its object is in effect"
		}
	}
	return ""
}

// pinned returns a violation if c deletes an undecided claim (only its record can decide about it)
// although its record is committed: the primary always, another claim while the record's object
// exists and its removal is not committed.
func (w *world) pinned(c Command) string {
	from := w.store.index(c.Peer)
	at := w.store.cells[from].obj
	if at == nil || !c.holds(at) || !at.Undecided() {
		return ""
	}
	i := w.store.find(at.Claim.Operation)
	if i < 0 || w.store.records[i].history || w.store.records[i].d.UID != at.Claim.Record {
		return ""
	}
	d := w.store.records[i].d
	switch {
	case !d.Committed:
		return ""
	case at.Claim.Primary && at.UID == d.Of.UID:
		return "I3: the primary of a committed record is deleted"
	}
	// A leaving peer needs no claims: it is emptied after all members have removed it from their lists.
	// Claims of an object in a peer that has left are dead, so they may be deleted. A rejoin creates
	// guards of this object before the peer is Active again.
	of := w.store.index(d.Of.Peer)
	if y := w.home(d.Of); !w.outsider(from) && !w.outsider(of) && !at.Claim.Primary && y != nil && !y.Leaving() {
		return "I2: a claim of a committed record is deleted"
	}
	return ""
}

// home returns the present home of the object that was created as ref, or nil if that object is
// gone. A home that has yielded (it names another replica as the next home) stays the home until
// that replica has become home.
func (w *world) home(ref Ref) *Object {
	at := func(ref Ref) *Object {
		if y := w.store.cells[w.store.index(ref.Peer)].obj; y != nil && y.UID == ref.UID {
			return y
		}
		return nil
	}
	y := at(ref)
	for y != nil && y.yielded(w.cfg.mode) {
		elect := at(y.Home.Ref)
		if elect != nil && elect.term() <= y.term() && !elect.Primary(w.cfg.mode) {
			break
		}
		y = elect
	}
	return y
}

// reaches reports whether p has peer configured. An adopter has all peers configured, whatever the
// creator of its record had. A departed peer is not configured for a central add while the model
// settles, or if cfg.givenUp is set.
func (w *world) reaches(p *proc, peer string) bool {
	switch {
	case (w.settling || w.cfg.givenUp) && p.op.Central && w.dismissed(w.store.index(peer)):
		return false
	case p.adopter:
		return true
	}
	return len(p.op.Peers) == 0 || slices.Contains(p.op.Peers, peer)
}

func (k *keyer) decision(d *Decision) {
	if d == nil {
		k.n(0)
		return
	}
	k.id(d.UID)
	k.id(d.RV)
	k.b(d.Committed)
	k.ref(d.Of)
}

func (k *keyer) records(records []record) {
	for i := range records {
		k.s(records[i].op)
		k.decision(&records[i].d)
		k.b(records[i].history)
		k.n(records[i].holder)
	}
	k.n(253)
}

// decided reports whether the record of the undecided claim x is committed, so that x will be
// bound.
func (w *world) decided(x *Object) bool {
	i := w.store.find(x.Claim.Operation)
	return x.Undecided() && i >= 0 && !w.store.records[i].history && w.store.records[i].d.UID == x.Claim.Record && w.store.records[i].d.Committed
}

// started returns the first commands of p, as the mutant changes them.
func (w *world) started(p *proc) []Command {
	if p.m.first() {
		w.history.begins(p.op)
	}
	var cmds []Command
	if p.m.first() {
		cmds = p.m.startFirst()
	} else {
		cmds = p.m.Start()
	}
	if w.cfg.mutant.handled != nil {
		cmds = w.cfg.mutant.handled(p, cmds)
	}
	return cmds
}

// drawCentral makes some adds of a random configuration adds of the first release, which a record
// in a central log decides.
func drawCentral(r *rand.Rand, cfg *config) {
	if r.IntN(4) > 0 {
		return
	}
	for i := range cfg.plans {
		if cfg.plans[i].op.Action == Add && r.IntN(3) > 0 {
			cfg.plans[i].op.Central = true
		}
	}
	cfg.adopters, cfg.retained = r.IntN(3), r.IntN(2) == 0
	if r.IntN(2) == 0 {
		cfg.twice = Propose
	}
}

// drawTakeovers makes coordinators share a log and take over each other's entries.
func drawTakeovers(r *rand.Rand, cfg *config) {
	if r.IntN(4) == 0 {
		cfg.takers = 1 + r.IntN(2)
	}
}
