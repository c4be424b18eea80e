// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// guards are configurations in which an earlier release runs an add or has committed one. Its guards
// (the objects that reserve the name in the other peers) carry the payload.
var guards = []config{
	{name: "guards with payload, remove", peers: 2, committed: "p", laden: true, sweepers: 2, plans: []plan{removal("r")}},
	{name: "guards with payload, kubectl delete, add", peers: 2, committed: "p", laden: true, sweepers: 1, deletes: 1, plans: []plan{add("y", "b", 2, "q")}},
	{name: "add of an earlier release", peers: 2, laden: true, sweepers: 1, timeouts: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p")}},
}

var guardMutants = []broken{
	{rule: "a guard carries no payload", cfg: config{
		peers: 2, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{command: func(_ *world, _ *proc, c Command) Command { return earlier(c) }},
	}, want: "I12"},
	{rule: "a sweep takes the payload from guards", cfg: config{
		peers: 2, committed: "p", laden: true,
		mutant: mutant{reply: func(_ *world, _ *proc, _ Command, r Reply) Reply {
			if r.Object.Guard(Once) {
				r.Object.Payload = ""
			}
			return r
		}, command: func(_ *world, p *proc, c Command) Command {
			if s := p.strand(c); c.Verb == Put && (s.Step == stepScrub || s.Step == stepBound) {
				c.Object.Payload = "p"
			}
			return c
		}},
	}, want: "I12"},
	{rule: "a guard keeps its claim when it loses its payload", cfg: config{
		peers: 2, committed: "p", laden: true,
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Step == stepScrub {
				c.Object.Claim.Of = Ref{}
			}
			return c
		}},
	}, want: "rule: the claim is immutable"},
	{rule: "the scrub of a guard has preconditions", cfg: config{
		peers: 2, committed: "p", laden: true, sweepers: 1, plans: []plan{removal("r"), add("y", "b", 2, "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Step == stepScrub {
				c.UID, c.RV = "", ""
			}
			return c
		}},
	}, want: "the claim is immutable"},
}

// earlier returns command c as an earlier release sends it, whose guards carry the payload.
func earlier(c Command) Command {
	if c.Verb == Create && c.Object.Guard(Once) {
		c.Object.Payload = "p"
	}
	return c
}

// overfull returns a violation if a guard of a member carries payload.
func (w *world) overfull() string {
	for i, c := range w.store.cells {
		if c.obj != nil && c.obj.Overfull(w.cfg.mode) && w.member(i) {
			return "I12: the guard in " + peerName(i) + " carries payload"
		}
	}
	return ""
}
