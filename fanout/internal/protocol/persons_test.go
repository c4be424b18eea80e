// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"slices"
	"strconv"
)

// persons bounds how often people and their tools may create, edit and delete an object without a
// claim, and edit the home of an Everywhere object.
type persons struct {
	creates, edits, withdrawals int
	releases                    int // how many requested removals persons may release
}

// putObject puts a person's object into peer i. Its UID distinguishes it from the objects that
// coordinators create.
func (w *world) putObject(i int, payload string) {
	w.store.uids++
	w.store.cells[i].obj = &Object{
		UID: "p" + strconv.Itoa(w.store.uids), RV: w.store.rv(), Payload: payload, Digest: digestOf(payload),
	}
}

func digestOf(payload string) string { return "d" + payload }

// personal adds the actions that persons may take next.
func (w *world) personal(add func(k kind, a, b int)) {
	for i, c := range w.store.cells {
		switch o := c.obj; {
		case w.isDown(i):
		case o == nil:
			if w.creates > 0 && !w.outsider(i) {
				add(actCreate, i, 0)
			}
		case !o.Claimed:
			if w.edits > 0 {
				add(actEdit, i, 0)
			}
			if w.withdrawals > 0 && !o.Terminating {
				add(actWithdraw, i, 0)
			}
		case o.Requested() && !o.Released && w.releases > 0:
			add(actRelease, i, 0)
		case w.cfg.mode == Everywhere && o.Primary(Everywhere) && o.Committed():
			if w.edits > 0 {
				add(actEdit, i, 0)
			}
		}
	}
}

// person applies action k of a person in peer i.
func (w *world) person(k kind, i int) {
	switch k {
	case actCreate:
		w.creates--
		w.putObject(i, "made"+strconv.Itoa(w.creates))
	case actEdit:
		w.edits--
		o := *w.store.cells[i].obj
		o.Payload = "edit" + strconv.Itoa(w.edits)
		o.Digest = digestOf(o.Payload)
		o.RV = w.store.rv()
		w.store.cells[i].obj = &o
	case actRelease:
		w.releases--
		w.release(i)
	case actWithdraw:
		w.withdrawals--
		w.personDeletes(i)
	}
}

func describePerson(k kind, at string) string {
	switch k {
	case actCreate:
		return "a person creates an object in " + at
	case actEdit:
		return "a person edits the object in " + at
	case actRelease:
		return "a person releases the removal in " + at
	default:
		return "a person deletes the object without a claim in " + at
	}
}

// strangers returns a violation if a peer has a committed object of the name while an Active member
// has an object without a claim.
func (w *world) strangers() string {
	owner := ""
	for i, c := range w.store.cells {
		if c.obj != nil && c.obj.Primary(w.cfg.mode) && c.obj.Committed() {
			owner = peerName(i)
		}
	}
	for i, c := range w.store.cells {
		if c.obj != nil && !c.obj.Claimed && owner != "" && !w.outsider(i) {
			return "I1: " + owner + " owns the name and a person's object stands in " + peerName(i)
		}
	}
	return ""
}

// waitsFor reports whether x is a secondary of a person's object that exists.
func (w *world) waitsFor(x *Object) bool {
	at := w.store.index(x.Of(w.cfg.mode).Peer)
	if at < 0 {
		return false
	}
	y := w.store.cells[at].obj
	return y != nil && !y.Claimed && y.UID == x.Of(w.cfg.mode).UID
}

// drawPersons adds random actions of persons, and operations about their objects.
func drawPersons(r *rand.Rand, cfg *config) {
	if r.IntN(3) > 0 || slices.ContainsFunc(cfg.plans, func(p plan) bool { return p.op.Central }) {
		return
	}
	some := func(n int) int { return max(0, r.IntN(2*n+1)-n) }
	cfg.edits, cfg.withdrawals = some(3), some(2)
	if cfg.deletes == 0 && len(cfg.changes) == 0 {
		cfg.creates = some(2)
	}
	cfg.inert = r.IntN(4) == 0
	for i := range cfg.plans {
		op := &cfg.plans[i].op
		switch {
		case op.Action != Add:
		case r.IntN(3) == 0:
			op.Action, op.Payload, cfg.plans[i].retry = Adopt, "", false
			if cfg.committed == "" && len(cfg.changes) == 0 && len(cfg.strangers) < 2 && r.IntN(2) == 0 {
				cfg.strangers += op.Target
			}
		case cfg.mode == Everywhere && r.IntN(3) == 0:
			op.Agree = true
		}
	}
}

// personal reports whether persons take part in a configuration.
func (cfg *config) personal() bool {
	return cfg.persons != persons{} || slices.ContainsFunc(cfg.plans, func(p plan) bool { return p.op.Action == Adopt || p.op.Agree })
}
