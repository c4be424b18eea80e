// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// keyer writes a world as bytes. Two worlds with equal bytes behave alike. Machines compare
// UIDs and resource versions only for equality, so the keyer renames them in the order in
// which they appear.
type keyer struct {
	buf   []byte
	names map[string]byte
}

var keySeed = maphash.MakeSeed()

func (k *keyer) s(s string) {
	if uid, ok := strings.CutPrefix(s, adoptionPrefix); ok {
		s = adoptionPrefix
		k.id(uid)
	}
	k.joined(s, "")
}

// joined writes a+b as one string.
func (k *keyer) joined(a, b string) {
	k.buf = append(k.buf, a...)
	k.buf = append(k.buf, b...)
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
	if o.Valve {
		k.s(string(o.Held.Reason))
		k.s(o.Held.Text)
		k.b(o.Released)
	}
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
	k.b(m.Undone, m.Revoked, m.ResultReady, m.Result.Durable, m.Reverted, m.Changed)
	k.object(&m.Forked)
	k.revision(m.Result.Mend.Dropped)
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
	if m.Primary.Valve {
		k.n(len(r.Occupants))
		k.s(r.Held.Text)
	}
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
			switch s.Task {
			case taskBring, taskGuard, taskClear, taskRetire:
				k.s(string(s.Task))
				if s.X.Home.Term > 1 {
					k.s(s.Peer)
				}
				if s.X.former(m.Op.Mode) {
					k.object(&s.X)
				}
			}
			continue
		}
		k.s(string(s.Task))
		k.s(s.Peer)
		k.s(string(s.Step))
		k.b(s.Busy, s.Unsure, s.Fresh)
		k.n(s.Tries)
		k.n(s.Turns)
		k.n(s.Asked)
		if s.Step != stepStart {
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
		k.ref(c.Object.Bound)
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
