// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// forced reports whether peer i was removed by force.
func (w *world) forced(i int) bool {
	return slices.ContainsFunc(w.store.cells, func(c cell) bool {
		// The PeerSet of a peer that is no full member is outdated.
		return c.set != nil && len(c.set.Departed) > 0 && c.set.Self.Peer != peerName(i) && c.set.current() && c.set.Gone(peerName(i)) && slices.ContainsFunc(c.set.Departed, func(d Departure) bool {
			return d.Peer == peerName(i) && d.How == "Forced"
		})
	})
}

// member reports whether peer i is a full member. Most invariants ignore the objects in other peers.
func (w *world) member(i int) bool {
	set := w.store.cells[i].set
	return set != nil && (set.Self.State == peerActive || set.Self.State == peerLeaving) && !w.forced(i)
}

// outsider reports whether peer i is no Active member, so that it need not hold any object.
func (w *world) outsider(i int) bool {
	return !w.member(i) || w.store.cells[i].set.Self.State != peerActive
}

// unlike returns a violation if no change is under way and the PeerSet of a member does not list
// exactly the members, each of them Active. Otherwise it returns "".
func (w *world) unlike() string {
	if w.restoring.over && !w.restoring.back {
		return "" // a person may have to decide before the restored peer is Active
	}
	var members []string
	for i, c := range w.store.cells {
		switch {
		case w.member(i) && c.set.Change.ID != "":
			return ""
		case w.member(i), w.withheld(i):
			members = append(members, peerName(i))
		}
	}
	for _, p := range members {
		if w.withheld(w.store.index(p)) {
			continue
		}
		set := w.store.cells[w.store.index(p)].set
		if set.Self.State != peerActive || !slices.Equal(set.names(""), members) {
			return "I11: " + p + " is " + set.Self.State + " and lists other members than there are"
		}
		for _, m := range set.Members {
			if m.State != peerActive {
				return "I11: " + p + " lists " + m.Peer + " as " + m.State
			}
		}
	}
	return ""
}

// withheld reports whether the rejoin of peer i was refused because of objects in this peer. The
// peer stays in quarantine until a person has decided about these objects and requests the rejoin
// again.
func (w *world) withheld(i int) bool {
	set := w.store.cells[i].set
	return set != nil && set.Self.State == peerQuarantined && !w.forced(i) && slices.ContainsFunc(w.procs, func(p *proc) bool {
		return p.change != nil && p.change.op.Kind == Return && p.change.op.Peer == peerName(i) &&
			p.change.result.Reason == Occupied && len(p.change.result.Blocking) > 0
	})
}

// changing reports whether a change is under way or still to come.
func (w *world) changing() bool {
	return slices.ContainsFunc(w.procs, func(p *proc) bool {
		return p.change != nil && !p.change.helper && (p.change.m != nil || p.state == idle || p.state == crashed)
	})
}

// left returns a violation if an object is in effect in a peer that has left.
func (w *world) left() string {
	for i, c := range w.store.cells {
		if c.set == nil || c.set.Self.State != peerOut || c.obj == nil || !c.obj.Claimed || c.obj.Stage == Reserved || w.forced(i) || !c.set.left(peerName(i)) {
			continue
		}
		if c.obj.Primary(w.cfg.mode) {
			return "OUT: " + peerName(i) + " has left and owns the name"
		}
		return "I7: " + peerName(i) + " has left with a replica in effect"
	}
	return ""
}

// settleChanges recovers and finishes every change.
func (w *world) settleChanges() string {
	for i := range w.procs {
		p := w.procs[i]
		if p.change != nil && p.state == crashed {
			w.beginChange(i)
			if s := w.drain(); s != "" {
				return "recovering " + p.change.op.ID + ": " + s
			}
		}
	}
	for n := 0; ; n++ {
		at := -1
		for i, c := range w.store.cells {
			if c.set != nil && c.set.Change.ID != "" && !w.isDown(i) && !w.forced(i) {
				at = i
				break
			}
		}
		if at < 0 {
			return ""
		}
		if n > 8 {
			return "a slot in " + peerName(at) + " finds no end"
		}
		if n > 2 {
			// A create that is applied late may leave a reservation, which blocks a change. Only a
			// sweep (a check and repair of all peers) deletes this reservation, not the change.
			w.procs = append(w.procs, &proc{sweep: true})
			for _, sweep := range []func(int) string{w.sweepAll, w.sweepNewcomers} {
				if s := sweep(len(w.procs) - 1); s != "" {
					return s
				}
			}
		}
		w.procs = append(w.procs, &proc{change: &changer{helper: true}})
		w.help(len(w.procs)-1, at)
		if s := w.drain(); s != "" {
			return "finishing a change: " + s
		}
	}
}
