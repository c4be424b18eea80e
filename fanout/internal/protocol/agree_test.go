// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

func agreeing(p plan) plan {
	p.op.Agree = true
	return retrying(p)
}

// agreements are configurations with adds that succeed if another operation has committed the
// object, with any content, and configurations whose reservations carry no content.
var agreements = []config{
	{name: "two live agreements", mode: Everywhere, peers: 2, lease: live, allSucceed: true, inert: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), agreeing(add("y", "b", 2, "q"))}},
	{name: "two live agreements, one target", mode: Everywhere, peers: 2, lease: live, allSucceed: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), agreeing(add("y", "a", 2, "q"))}},
	{name: "agreement, crash, sweep", mode: Everywhere, peers: 2, sweepers: 1, crashes: 1, inert: true, plans: []plan{agreeing(add("x", "a", 1, "p"))}},
	{name: "agreement and add", mode: Everywhere, peers: 2, lease: live, exactlyOne: true, inert: true,
		plans: []plan{agreeing(add("x", "a", 2, "p")), retrying(add("y", "b", 1, "q"))}},
	{name: "agreement on an object that is edited and deleted", mode: Everywhere, peers: 2, committed: "o", sweepers: 1, deletes: 1, persons: persons{edits: 1},
		plans: []plan{agreeing(add("y", "b", 2, "q"))}},
	{name: "inert add", peers: 2, sweepers: 1, timeouts: 1, inert: true, plans: []plan{add("x", "a", 1, "p")}},
	{name: "inert account adoption, edit", mode: Everywhere, peers: 2, strangers: "a", inert: true, sweepers: 1, persons: persons{edits: 1},
		plans: []plan{adoption("x", "a")}},
}

var agreementsDeep = []config{
	{name: "two agreements, timeout, crash", mode: Everywhere, peers: 2, timeouts: 1, crashes: 1, inert: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), agreeing(add("y", "b", 2, "q"))}},
	{name: "3 peers, three live agreements", mode: Everywhere, peers: 3, lease: live, allSucceed: true, inert: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), agreeing(add("y", "b", 2, "q")), agreeing(add("z", "c", 3, "s"))}},
	{name: "agreement, update, removal", mode: Everywhere, peers: 2, timeouts: 1, inert: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), update("v", "q"), removal("r")}},
	{name: "agreement, removal, sweep", mode: Everywhere, peers: 2, sweepers: 1, inert: true,
		plans: []plan{agreeing(add("x", "a", 1, "p")), removal("r")}},
	{name: "inert adds, duplicates, sweep", peers: 2, sweepers: 1, duplicates: 1, inert: true, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}},
}

var agreementMutants = []broken{
	{rule: "the commit brings the content that an inert reservation lacks", cfg: config{
		mode: Everywhere, peers: 2, inert: true, plans: []plan{agreeing(add("x", "a", 1, "p"))},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskCommit {
				c.Object.Payload = ""
			}
			return c
		}},
	}, want: "I7"},
	{rule: "an inert reservation carries no content", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", inert: true, sweepers: 1, deletes: 1,
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Create {
				c.Object.Payload = p.m.Primary.Payload
			}
			return c
		}},
	}, want: "inert"},
	{rule: "only committed objects are agreed on", cfg: config{
		mode: Everywhere, peers: 2, lease: live, inert: true, plans: []plan{agreeing(add("x", "a", 1, "p")), agreeing(add("y", "b", 2, "q"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskAcquire && r.Object.Pending() && r.Object.Claim.Primary {
				r.Object.Stage = Active
			}
			return r
		}},
	}, want: "I2"},
}
