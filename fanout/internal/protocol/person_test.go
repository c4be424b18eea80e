// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// personDeletes applies a plain delete of the object in peer i.
func (w *world) personDeletes(i int) {
	o := *w.store.cells[i].obj
	w.history.person(o, w.cfg.mode)
	if w.cfg.mode == Everywhere && (o.Primary(Everywhere) || o.yielded(Everywhere)) {
		w.note(byHand)
	}
	if !o.Finalizer && !o.Foreign {
		w.store.cells[i].obj = nil
		return
	}
	o.Terminating, o.RV = true, w.store.rv()
	w.occupied = o.Requested() && w.inhabited()
	w.store.cells[i].obj = &o
}

// unhold removes the foreign finalizer of the object in peer i.
func (w *world) unhold(i int) {
	if w.store.cells[i].obj == nil || !w.store.cells[i].obj.Foreign {
		return
	}
	o := *w.store.cells[i].obj
	o.Foreign, o.RV = false, w.store.rv()
	w.store.cells[i].obj = &o
	if o.Terminating && !o.Finalizer {
		w.store.cells[i].obj = nil
	}
}
