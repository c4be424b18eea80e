// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// adoptable adds the actions in which an idle adopter begins to settle an add of the first release by
// its record in the central log.
func (w *world) adoptable(add func(k kind, a, b int)) {
	for i, p := range w.procs {
		if !p.adopter || p.m != nil {
			continue
		}
		for j, r := range w.store.records {
			if !r.history {
				add(actAdopt, i, j)
			}
		}
	}
}

// holds returns the number that stands for process i as the holder in a record.
func (p *proc) holds(i int) int {
	if p.adopter {
		return 1 + i
	}
	return 0
}

// seize writes process i into the record of op as its holder.
func (w *world) seize(i int, op string) {
	j := w.store.find(op)
	if j < 0 || w.store.records[j].history || w.store.records[j].holder == w.procs[i].holds(i) {
		return
	}
	w.store.records[j].holder = w.procs[i].holds(i)
	w.store.records[j].d.RV = w.store.rv()
}

// adopt makes process i settle the operation of record j.
func (w *world) adopt(i, j int) {
	w.seize(i, w.store.records[j].op)
	p := w.own(i)
	p.op = w.operationOf(w.store.records[j].op)
	if w.losing.gone {
		p.op.Patience = Hasty
	}
	p.m, p.state = Recover(p.op, Record{Primary: Ref{Peer: p.op.Target}}), running
	w.run(i, p.m.Start())
}

// operationOf returns the operation of the plan to which the record with this ID belongs, under
// this ID. If the plan was retried, its operation has another ID than the plan.
func (w *world) operationOf(id string) Operation {
	for _, p := range w.procs[:len(w.cfg.plans)] {
		if p.op.ID[:1] == id[:1] {
			op := p.op
			op.ID = id
			return op
		}
	}
	panic("no plan has the operation " + id)
}

// settleRecords runs a process that settles all open records of the central log.
func (w *world) settleRecords() string {
	open := func() int {
		return slices.IndexFunc(w.store.records, func(r record) bool { return !r.history && !w.suspended(r) })
	}
	if open() < 0 {
		return ""
	}
	w.procs = append(w.procs, &proc{adopter: true, plain: true})
	for n := 0; open() >= 0; n++ {
		if n > 20 {
			return "L2: the record of " + w.store.records[open()].op + " stays"
		}
		w.adopt(len(w.procs)-1, open())
		if s := w.drain(); s != "" {
			return "adopting: " + s
		}
	}
	return ""
}
