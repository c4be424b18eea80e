// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The primary of an Everywhere object, its home, may move: it yields (gives up its place) to a
// replica in another peer, and each new home has a higher term. A process that finds a yielded home
// follows it, to a higher term only, and finishes or reverts a move that was interrupted.

// elects reports whether o has yielded to x, found in peer, and x is not the home yet. As long as
// this holds, a process may only make x the home, and must not delete x as a dead secondary.
func (o Object) elects(peer string, x Object) bool {
	return o.Home.Yielded && o.Home.Ref == Ref{Peer: peer, UID: x.UID} && x.term() < o.term()
}

// yielded reports whether o, found in the peer that its claim names, has yielded its home and
// holds the state that the next home needs.
func (o Object) yielded(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Home.Yielded && !o.Primary(mode)
}

// Outranks reports whether x is a replica of the same object as home o and names an earlier
// home.
func (o Object) Outranks(x Object) bool {
	return x.Claimed && x.Claim.Operation == o.Claim.Operation && x.term() < o.term() && !x.Primary(Everywhere)
}

// former reports whether o was home and still has our finalizer.
func (o Object) former(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Finalizer && !o.Primary(mode)
}

// astray records that the primary is not where it was expected. o, found in peer, names the next
// home to read. If o is unclaimed and no other lead is known, all peers are searched.
func (m *Machine) astray(o Object, peer string) {
	m.Astray = true
	if o.Claimed && (!m.Lead.Claimed || o.term() >= m.Lead.term()) {
		m.Lead, m.LeadAt = o, peer
	}
}

// strayed reports whether o has the UID of the known primary and is no longer the primary.
func (m *Machine) strayed(o Object) bool {
	return m.Op.Mode == Everywhere && o.UID == m.Record.Primary.UID && o.Claimed && o.Stage != Reserved && !o.Primary(Everywhere)
}

// regain begins to search for the primary, which is not where it was last known to be. It searches
// by the operation in the primary's claim, because another object may have the name by now.
func (j findJob) regain() {
	m := j.m
	m.Astray, m.Present = false, false
	if m.Record.Origin == "" && m.Op.logged() && m.Primary.Claimed {
		m.Record.Origin = m.Primary.Claim.Operation
	}
	m.Stopping = false
	m.Result.Pending = nil
	if m.Turns++; m.Turns > takeovers {
		m.because(Contended, m.Record.Primary.Peer)
		m.Lead = Object{}
		j.unfound()
		return
	}
	if m.Op.Action == Succeed && (!m.Lead.yielded(Everywhere) || m.Lead.Home.frozen()) {
		m.Lead = Object{}
		succeedJob{m}.begin()
		return
	}
	if !m.Lead.Claimed {
		j.begin()
		return
	}
	m.enter(following)
	m.spawn(taskFollow, m.LeadAt)
}
