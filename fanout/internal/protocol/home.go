// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The primary of an object that exists everywhere may move. Whoever finds that
// the one he knew has yielded follows it, to a higher term only, and finishes or
// takes back a move that nobody finished.

// elects says whether y has yielded to x, found in peer, and x is not home yet.
// While that is so x may only be made home, never judged.
func (o Object) elects(peer string, x Object) bool {
	return o.Home.Yielded && o.Home.Ref == Ref{Peer: peer, UID: x.UID} && x.term() < o.term()
}

// yielded says whether o, found in the peer its claim names, gave its home up
// and holds what the next one needs.
func (o Object) yielded(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Home.Yielded && !o.Primary(mode)
}

// Outranks says that x is a replica of the same object as home o and names an
// earlier home.
func (o Object) Outranks(x Object) bool {
	return x.Claimed && x.Claim.Operation == o.Claim.Operation && x.term() < o.term() && !x.Primary(Everywhere)
}

// former says whether o was home and is held by our finalizer still.
func (o Object) former(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Finalizer && !o.Primary(mode)
}

// astray notes that the primary is not where it was known to be: o, found in
// peer, was it and has moved on. Without o it is looked for everywhere.
func (m *Machine) astray(o Object, peer string) {
	m.Astray = true
	if o.Claimed && (!m.Lead.Claimed || o.term() >= m.Lead.term()) {
		m.Lead, m.LeadAt = o, peer
	}
}

// strayed says whether o, which answers to the UID of the primary that was
// known, is not the primary any more.
func (m *Machine) strayed(o Object) bool {
	return m.Op.Mode == Everywhere && o.UID == m.Record.Primary.UID && o.Claimed && o.Stage != Reserved && !o.Primary(Everywhere)
}

// regain goes on to find the primary that was lost: it, by its claim, and not
// whatever has the name by now.
func (m *Machine) regain() {
	m.Astray, m.Present = false, false
	if m.Record.Origin == "" && m.Op.logged() && m.Primary.Claimed {
		m.Record.Origin = m.Primary.Claim.Operation
	}
	m.Stopping = false
	m.Result.Pending = nil
	if m.Turns++; m.Turns > takeovers {
		m.because(Contended, m.Record.Primary.Peer)
		m.Lead = Object{}
		m.unfound()
		return
	}
	if m.Op.Action == Succeed && (!m.Lead.yielded(Everywhere) || m.Lead.frozen()) {
		m.Lead = Object{}
		m.succeed()
		return
	}
	if !m.Lead.Claimed {
		m.find()
		return
	}
	m.enter(following)
	m.spawn(jobFollow, m.LeadAt)
}
