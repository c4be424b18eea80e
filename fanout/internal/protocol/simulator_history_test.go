// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math"
	"slices"
)

// history records the calls of operations and their results as the callers observed them, each at
// its time, and the results of reads in single peers (look-ups). Nothing in it comes from inside
// the protocol.
type history struct {
	now   int64
	deeds []*deed
	of    map[string]*deed
	// others: at some time an object, create or finalizer that belongs to no deed was in the way.
	others bool
	// yielded are the deletes by persons of homes that had yielded (given up their place to a
	// replica), by the home's UID.
	yielded map[string]*deed
}

// deed is one call and its result.
type deed struct {
	id     string
	action Action
	equal  string // the same text in two adds that request the same object
	digest string
	call   int64
	end    int64 // time of the result; math.MaxInt64: never certain
	gone   int64 // the time from which on no part of the deed can be applied
	astray bool  // a create of the deed may be applied at any later time
	ending Ending
	reason Reason
}

// Actions that are no operations of the protocol.
const (
	lookup      Action = "look-up"       // a look-up in one peer, which found nothing
	plainDelete Action = "delete"        // a delete by a person
	absence     Action = "not in effect" // the statement that an operation which returned Ended is not in effect
)

func (h *history) add(d *deed) *deed {
	h.now++
	d.call, d.end, d.gone = h.now, math.MaxInt64, math.MaxInt64
	h.deeds = append(h.deeds, d)
	return d
}

// at records a deed that took no time.
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

// ends records the result of an operation. Only after InDoubt may another result follow.
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

// strays records that a create of op is still on its way when op is over.
func (h *history) strays(op string) {
	if d := h.of[op]; d != nil {
		d.astray = true
		return
	}
	h.others = true
}

// person records that a person deletes o.
func (h *history) person(o Object, mode Mode) {
	if h == nil || !o.Committed() || !o.Primary(mode) && !o.yielded(mode) {
		return
	}
	d := h.add(&deed{id: "person", action: plainDelete}) // a coordinator finishes the removal
	if o.yielded(mode) {
		h.yielded[o.UID] = d
		return
	}
	d.end, d.ending = d.call, Done
}

// watch records objects that belong to no operation and are in the way of all operations. It also
// records the result of the delete of a home that had yielded: the delete is a removal once the
// move is taken back, and has no effect if the move is never taken back.
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

// look reads the object in peer i, as a router does. It records the look-up if there is no object.
func (w *world) look(i int) {
	if w.store.cells[i].obj == nil {
		w.history.at(&deed{id: peerName(i), action: lookup})
	}
}

// sights reports whether a look-up in peer i that finds no object proves that the name is free. The
// peer must be an Active member, and no person may have deleted a replica.
func (w *world) sights(i int) bool {
	return w.store.cells[i].set != nil && !w.outsider(i) && (w.cfg.mode == Once || w.deletes == w.cfg.deletes)
}

// saw returns r, without the reason Missing if this reason does not prove that the object is absent:
// not all peers are configured for op, and a person may have deleted the replicas in those that are.
func (w *world) saw(op Operation, r Result) Result {
	for i := range w.store.cells {
		if r.Reason == Missing && w.deletes != w.cfg.deletes && !slices.Contains(op.Peers, peerName(i)) {
			r.Reason = ""
		}
	}
	return r
}
