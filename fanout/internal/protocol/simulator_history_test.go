// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math"
	"slices"
)

// history is what the callers of operations saw, each at its time, and what
// look-ups in single peers found. Nothing in it comes from inside the protocol.
type history struct {
	now   int64
	deeds []*deed
	of    map[string]*deed
	// others: somebody else's object or finalizer was in the way at some time.
	others bool
	// yielded are the deletes by persons of homes that had yielded, by UID.
	yielded map[string]*deed
}

// deed is what a caller asked for and was told.
type deed struct {
	id     string
	action Action
	equal  string // what makes two adds the same
	digest string
	call   int64
	end    int64 // when it was told how it ended; math.MaxInt64: never for certain
	gone   int64 // when nothing of it could go on any more
	astray bool  // a create of it may land at any later time
	ending Ending
	reason Reason
}

// What is not an operation of the protocol.
const (
	lookup      Action = "look-up"       // of one peer, which found nothing
	plainDelete Action = "delete"        // by a person
	absence     Action = "not in effect" // what an operation that ended claims
)

func (h *history) add(d *deed) *deed {
	h.now++
	d.call, d.end, d.gone = h.now, math.MaxInt64, math.MaxInt64
	h.deeds = append(h.deeds, d)
	return d
}

// at notes something that took no time.
func (h *history) at(d *deed) {
	h.add(d)
	d.end, d.gone, d.ending = d.call, d.call, Done
}

func (h *history) begins(op Operation) {
	if h == nil || h.of[op.ID] != nil {
		return
	}
	equal := op.Digest
	if op.Mode == Once {
		equal += " in " + op.Target
	}
	h.of[op.ID] = h.add(&deed{id: op.ID, action: op.Action, equal: equal, digest: op.Digest})
}

// ends notes what was said of an operation. Only in doubt is not the last word.
func (h *history) ends(op Operation, r Result) {
	if h == nil || h.of[op.ID] == nil {
		return
	}
	d := h.of[op.ID]
	h.now++
	if !r.Keep && !d.astray {
		d.gone = h.now
	}
	if d.ending != Running || r.Ending == InDoubt {
		return
	}
	d.ending, d.reason, d.end = r.Ending, r.Reason, h.now
	if r.Ending == Ended {
		h.at(&deed{id: op.ID, action: absence})
	}
}

// strays notes that a create of op is still on its way when op is over.
func (h *history) strays(op string) {
	if d := h.of[op]; d != nil {
		d.astray = true
		return
	}
	h.others = true
}

// person notes that a person deletes o.
func (h *history) person(o Object, mode Mode) {
	if h == nil || !o.Committed() || !o.Primary(mode) && !o.yielded(mode) {
		return
	}
	d := h.add(&deed{id: "person", action: plainDelete}) // others carry it to its end
	if o.yielded(mode) {
		h.yielded[o.UID] = d
		return
	}
	d.end, d.ending = d.call, Done
}

// watch looks out for what is nobody's operation and in the way of all, and for
// what became of the delete of a home that had yielded: it is a removal from when
// the move is taken back, and nothing if that never happens.
func (h *history) watch(s store) {
	if h == nil {
		return
	}
	left := map[string]Object{}
	for _, c := range s.cells {
		if c.obj != nil {
			left[c.obj.UID] = *c.obj
			h.others = h.others || !c.obj.Claimed || c.obj.Foreign
		}
	}
	for uid, d := range h.yielded {
		o := left[uid]
		if o.yielded(Everywhere) {
			continue
		}
		h.now++
		d.end, d.ending = h.now, Aborted
		if o.Primary(Everywhere) {
			d.ending = Done
		} else {
			d.gone = h.now
		}
		delete(h.yielded, uid)
	}
}

// look reads the object in peer i, as a router does.
func (w *world) look(i int) {
	if w.store.cells[i].obj == nil {
		w.history.at(&deed{id: peerName(i), action: lookup})
	}
}

// sights says whether a look-up in peer i is a proof: in a peer that has all
// that its membership gives it, and that nobody took a guard from by hand.
func (w *world) sights(i int) bool {
	return w.store.cells[i].set != nil && !w.outsider(i) && (w.cfg.mode == Once || w.deletes == w.cfg.deletes)
}

// saw is what the caller of op was told, as far as it is a proof: whoever does not
// know all peers finds nothing where a person took the replicas away by hand.
func (w *world) saw(op Operation, r Result) Result {
	for i := range w.store.cells {
		if r.Reason == Missing && w.deletes != w.cfg.deletes && !slices.Contains(op.Peers, peerName(i)) {
			r.Reason = ""
		}
	}
	return r
}
