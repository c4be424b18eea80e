// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// key returns a hash of the state of w.
func (w *world) key(k *keyer) uint64 {
	k.reset()
	k.records(w.store.records)
	k.cells(w.store.cells)
	w.keySets(k)
	for _, b := range []int{w.timeouts, w.unsent, w.denials, w.crashes, w.duplicates, w.expiries, w.bumps, w.deletes, w.foreign, w.beats, w.moves, int(w.tenant),
		w.creates, w.edits, w.withdrawals} {
		k.n(b)
	}
	k.b(w.losing.gone, w.losing.down, w.restoring.backup != nil, w.restoring.over, w.restoring.noticed, w.restoring.quarantinedSince, w.restoring.back)
	if w.restoring.backup != nil {
		k.object(w.restoring.backup.obj)
		if len(w.cfg.changes) > 0 {
			k.set(w.restoring.backup.set)
		}
	}
	if w.cfg.astray != "" {
		k.b(w.astray.now, w.astray.over)
		k.object(w.astray.other.obj)
	}
	for _, op := range w.dropped {
		k.s(op)
	}
	k.s(w.admitting)
	if w.cfg.valve {
		k.b(w.occupied)
		k.n(w.releases)
	}
	k.lodger(w.lodger)
	for _, o := range w.committed {
		k.s(o)
	}
	k.n(int(w.latest.revision.Number))
	k.n(254)
	for _, o := range w.denied {
		k.s(o)
	}
	for _, p := range w.procs {
		k.n(int(p.state))
		k.n(p.attempt)
		if p.change != nil {
			k.change(p.change)
		}
		k.n(p.asked.parent)
		k.n(p.asked.cmd.Strand)
		if p.spawned && p.m != nil {
			k.s(string(p.op.Action))
			for _, into := range p.op.Into {
				k.s(into)
			}
		}
		if p.sweep && p.m != nil {
			k.s(p.op.Target)
			k.object(&p.op.Met)
			if !p.spawned && len(w.cfg.changes) > 0 {
				// A peer that was removed by force may be missing from the process's configuration.
				for _, peer := range p.op.Peers {
					k.s(peer)
				}
			}
		}
		if p.adopter && p.m != nil {
			k.s(p.op.ID)
		}
		k.id(p.op.Version)
		k.b(p.taken)
		if p.taker {
			k.s(p.op.ID)
		}
		if p.seen != nil {
			k.cells(p.seen)
		}
		if p.m != nil {
			k.machine(p.m)
		} else {
			k.s(string(p.result.Ending))
			k.s(string(p.result.Reason))
			if w.cfg.restored != "" {
				k.b(p.result.Durable, p.overtaken)
				k.n(int(p.result.Revision))
			}
			if p.state == waiting {
				k.id(p.result.Holder.UID)
			}
		}
		if p.m != nil || p.state == crashed {
			k.lives(p.op.Epochs)
			k.record(p.record)
		}
	}
	slices.SortStableFunc(w.net, func(a, b message) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a.proc, b.proc), cmp.Compare(a.cmd.Strand, b.cmd.Strand),
			cmp.Compare(a.cmd.Verb, b.cmd.Verb), cmp.Compare(a.cmd.Peer, b.cmd.Peer))
	})
	for i := range w.net {
		m := &w.net[i]
		k.n(m.proc)
		k.b(m.orphan, m.double, m.applied)
		k.command(&m.cmd)
		if m.applied {
			k.reply(m.reply)
		}
	}
	return maphash.Bytes(keySeed, k.buf)
}

// reply writes a reply that is on its way.
func (k *keyer) reply(r *Reply) {
	k.n(int(r.Class))
	k.s(string(r.Code))
	k.object(&r.Object)
	if r.PeerSet.UID != "" {
		k.set(&r.PeerSet)
	}
	if r.Decision != nil {
		k.decision(r.Decision)
	}
	for i := range r.Found {
		k.object(&r.Found[i].Object)
	}
	for _, o := range r.Occupants {
		k.s(o.Peer + o.Name + string(o.Stage))
	}
	k.n(250)
}

func order(m message) int {
	if m.orphan {
		return 1
	}
	return 0
}

func (k *keyer) reset() {
	k.buf = k.buf[:0]
	if k.names == nil {
		k.names = map[string]byte{}
	}
	clear(k.names)
}

// lodger writes the state of w, the world of an object in the owner's namespace, if there is one.
func (k *keyer) lodger(w *world) {
	if w == nil {
		return
	}
	var inner keyer
	k.buf = binary.LittleEndian.AppendUint64(k.buf, w.key(&inner))
}
