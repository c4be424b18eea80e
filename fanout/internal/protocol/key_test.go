// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// keyer writes a world as bytes that are equal when two worlds behave alike.
// UIDs and resource versions are only ever compared for equality, so they are
// renamed in the order in which they appear.
type keyer struct {
	buf   []byte
	names map[string]byte
}

var keySeed = maphash.MakeSeed()

func (k *keyer) s(s string) {
	if uid, ok := strings.CutPrefix(s, adoptionOf("")); ok {
		s = adoptionOf("")
		k.id(uid)
	}
	k.buf = append(k.buf, s...)
	k.buf = append(k.buf, 0)
}

func (k *keyer) n(n int) { k.buf = append(k.buf, byte(n)) }

func (k *keyer) b(bs ...bool) {
	n := 0
	for _, b := range bs {
		n *= 2
		if b {
			n++
		}
	}
	k.n(n)
}

func (k *keyer) id(s string) {
	if s == "" {
		k.n(0)
		return
	}
	n, ok := k.names[s]
	if !ok {
		n = byte(len(k.names) + 1)
		k.names[s] = n
	}
	k.n(int(n))
}

func (k *keyer) ref(r Ref) {
	k.s(r.Peer)
	k.id(r.UID)
}

func (k *keyer) revision(r Revision) {
	k.n(int(r.Number))
	k.s(r.Operation)
	k.s(r.Digest)
}

func (k *keyer) object(o *Object) {
	if o == nil || o.UID == "" && !o.Claimed {
		k.n(255)
		return
	}
	k.id(o.UID)
	k.id(o.RV)
	k.b(o.Terminating, o.Finalizer, o.Foreign, o.Claimed, o.Claim.Primary)
	k.s(o.Claim.Operation)
	k.s(o.Claim.Peer)
	k.ref(o.Claim.Of)
	k.id(o.Claim.Record)
	k.ref(o.Bound)
	k.s(string(o.Stage))
	k.n(int(o.Heartbeat))
	k.s(o.Removal)
	k.revision(o.Revision)
	for _, h := range o.History {
		k.revision(h)
	}
	k.ref(o.Home.Ref)
	k.n(int(o.Home.Term / generation))
	k.n(int(o.Home.Term % generation))
	k.b(o.Home.Yielded)
	k.s(o.Payload)
}

func (k *keyer) record(r Record) {
	k.ref(r.Primary)
	k.ref(r.Elect)
	k.s(r.Origin)
	k.n(int(r.Term % 251))
	k.n(int(r.Base))
	k.b(r.Committing, r.Committed, r.Arrived)
	for _, p := range r.Leftover {
		k.s(p)
	}
}

func (k *keyer) machine(m *Machine) {
	k.s(string(m.Phase))
	k.s(m.Op.UID)
	k.record(m.Record)
	k.decision(&m.Decision)
	k.b(m.Withdrawn)
	k.object(&m.Primary)
	if m.HaveSet {
		k.members(&m.Set)
	}
	for _, p := range slices.Sorted(maps.Keys(m.Sets)) {
		k.s(p)
		set := m.Sets[p]
		k.members(&set)
	}
	k.b(m.HaveSet, m.Present, m.Unsure, m.Stopping, m.Expired, m.Resumed)
	k.b(m.Astray, m.Searched)
	k.n(m.Turns)
	k.s(m.Named)
	if m.Lead.Claimed {
		k.s(m.LeadAt)
		k.object(&m.Lead)
	}
	for _, p := range slices.Sorted(maps.Keys(m.Claims)) {
		c := m.Claims[p]
		k.s(p)
		k.object(&c.Object)
		k.b(c.Held, c.Unsure)
	}
	r := m.Result
	k.s(string(r.Ending))
	k.s(string(r.Reason))
	k.object(&r.Holder)
	k.s(r.HolderAt)
	k.b(r.Keep)
	for _, p := range r.Pending {
		k.s(p)
	}
	k.n(254)
	for _, p := range m.Departed {
		k.s(p)
	}
	k.n(255)
	for i := range m.Strands {
		s := &m.Strands[i]
		if s.Over {
			switch s.Job {
			case jobBring, jobGuard, jobClear, jobRetire:
				k.s(string(s.Job))
				if s.X.Home.Term > 1 {
					k.s(s.Peer)
				}
				if s.X.former(m.Op.Mode) {
					k.object(&s.X)
				}
			}
			continue
		}
		k.s(string(s.Job))
		k.s(s.Peer)
		k.s(string(s.Step))
		k.b(s.Busy, s.Unsure, s.Fresh)
		k.n(s.Tries)
		k.n(s.Turns)
		if s.Step != "" {
			k.object(&s.X)
			k.object(&s.Y)
		}
		uid, rv, _ := strings.Cut(s.Seen, "@")
		k.id(uid)
		k.id(rv)
		if m.Op.Lease < live {
			k.n(min(s.Quiet, m.Op.Lease))
		}
	}
}

func (k *keyer) command(c *Command) {
	k.s(string(c.Verb))
	k.s(c.Record)
	if c.Verb == Decide {
		k.decision(&c.Decision)
	}
	k.s(c.Peer)
	k.id(c.UID)
	k.id(c.RV)
	if c.Verb == Create || c.Verb == Put {
		k.object(&c.Object)
	}
	if c.Set != nil {
		k.set(c.Set)
	}
}

func (k *keyer) cells(cells []cell) {
	for i := range cells {
		k.object(cells[i].obj)
	}
}

// key is the state of w.
func (w *world) key(k *keyer) uint64 {
	k.reset()
	k.records(w.store.records)
	k.cells(w.store.cells)
	w.keySets(k)
	for _, b := range []int{w.timeouts, w.unsent, w.denials, w.crashes, w.duplicates, w.expiries, w.bumps, w.deletes, w.foreign, w.beats, w.moves, int(w.tenant),
		w.creates, w.edits, w.withdrawals} {
		k.n(b)
	}
	k.b(w.losing.gone, w.losing.down)
	k.s(w.admitting)
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
				// It does not have configured whom somebody had given up.
				for _, peer := range p.op.Peers {
					k.s(peer)
				}
			}
		}
		if p.adopter && p.m != nil {
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
			if p.state == waiting {
				k.id(p.result.Holder.UID)
			}
		}
		if p.m != nil || p.state == crashed {
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
		k.b(m.orphan, m.double)
		k.command(&m.cmd)
	}
	return maphash.Bytes(keySeed, k.buf)
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

// lodger writes the state of the namespace.
func (k *keyer) lodger(w *world) {
	if w == nil {
		return
	}
	var inner keyer
	k.buf = binary.LittleEndian.AppendUint64(k.buf, w.key(&inner))
}
