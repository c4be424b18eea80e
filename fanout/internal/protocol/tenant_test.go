// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// tenant is the state of an object of another name that is being added to the namespace which the
// first object owns. The add has three steps: reserve the name, read the owner in the same peer,
// commit.
type tenant uint8

const (
	outside tenant = iota
	reserved
	admitted // the add has read an active owner
	resident
)

// reside replies to a removal of the owner that lists or settles the namespace in one peer. The
// reply has the tenant if the tenant is in that peer. A Settle fences a tenant that is not committed
// (it deletes the reservation), so its reply does not have this tenant.
func (w *world) reside(c Command) Reply {
	ok := Reply{Class: Applied, Code: OK}
	if w.tenant == outside || c.Peer != peerName(w.cfg.tenant-1) {
		return ok
	}
	stage := Reserved
	switch {
	case w.tenant == resident:
		stage = Configured
	case c.Verb == Settle:
		w.tenant = outside // fenced
		return ok
	}
	ok.Occupants = []Occupant{{Peer: c.Peer, Name: "tenant", Stage: stage}}
	return ok
}

// move takes the tenant's next step.
func (w *world) move() {
	switch w.tenant {
	case outside:
		w.tenant = reserved
	case reserved:
		w.tenant = outside
		if o := w.store.cells[w.cfg.tenant-1].obj; o != nil && o.InEffect() && o.Stage == Active {
			w.tenant, w.admitting = admitted, o.Claim.Operation
		}
	case admitted:
		w.tenant = resident
	case resident:
		w.tenant = outside
	}
}

// orphaned reports whether the tenant is in effect and its owner is gone.
func (w *world) orphaned() bool {
	if w.tenant != resident {
		return false
	}
	for _, c := range w.store.cells {
		if c.obj != nil && (c.obj.Primary(w.cfg.mode) && c.obj.Stage != Reserved || c.obj.yielded(w.cfg.mode)) {
			return false
		}
	}
	return true
}
