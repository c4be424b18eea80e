// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

func adoption(id, target string) plan {
	return plan{op: Operation{ID: id, Action: Adopt, Target: target, Start: 1}}
}

// adoptSmall are configurations with edits by persons, and with adoptions: operations that commit an
// object which a person applied.
var adoptSmall = []config{
	{name: "adoption, edit, timeout", peers: 2, strangers: "a", sweepers: 1, timeouts: 1, persons: persons{edits: 1}, plans: []plan{adoption("x", "a")}},
	{name: "adoption, crash, timeout", peers: 2, strangers: "a", timeouts: 1, crashes: 1, plans: []plan{adoption("x", "a")}},
	{name: "adoption, a lease, a beat", peers: 2, strangers: "a", lease: 2, beats: 1, timeouts: 1, plans: []plan{adoption("x", "a")}},
	{name: "adoption and add", peers: 2, strangers: "a", sweepers: 1, plans: []plan{adoption("x", "a"), add("y", "b", 2, "q")}},
	{name: "adoption of an object that is withdrawn, add", peers: 2, strangers: "a", sweepers: 1, persons: persons{withdrawals: 1},
		plans: []plan{adoption("x", "a"), add("y", "b", 2, "q")}},
	{name: "two adoptions, two persons", peers: 2, strangers: "ab", sweepers: 1, persons: persons{withdrawals: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "b")}},
	{name: "two adoptions of one object", peers: 2, strangers: "a", allSucceed: true, sweepers: 1, plans: []plan{adoption("x", "a"), adoption("y", "a")}},
	{name: "adoption, two persons, 3 peers", peers: 3, strangers: "ab", persons: persons{withdrawals: 1}, plans: []plan{adoption("x", "a")}},
	{name: "adoption, removal, a person creates again, timeout", peers: 2, strangers: "a", timeouts: 1, persons: persons{creates: 1},
		plans: []plan{adoption("x", "a"), removal("r")}},
	{name: "adoption, removal, a person creates again, crash", peers: 2, strangers: "a", timeouts: 1, crashes: 1, persons: persons{creates: 1},
		plans: []plan{adoption("x", "a"), removal("r")}},
	{name: "account adoption, removal, a person creates again", mode: Everywhere, peers: 2, strangers: "a", timeouts: 1, crashes: 1, persons: persons{creates: 1},
		plans: []plan{adoption("x", "a"), removal("r")}},
	{name: "account adoption, edits", mode: Everywhere, peers: 2, strangers: "a", sweepers: 1, persons: persons{edits: 2}, plans: []plan{adoption("x", "a")}},
	{name: "two account adoptions, edit", mode: Everywhere, peers: 2, strangers: "a", allSucceed: true, persons: persons{edits: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "a")}},
	{name: "account adoption, update, removal", mode: Everywhere, peers: 2, strangers: "a", plans: []plan{adoption("x", "a"), update("v", "q"), removal("r")}},
	{name: "edits", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 2}},
	{name: "edit and update", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 1}, plans: []plan{update("x", "q")}},
	{name: "edit and removal", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 1}, plans: []plan{removal("r")}},
	{name: "edit and add", mode: Everywhere, peers: 2, timeouts: 1, persons: persons{edits: 1}, plans: []plan{add("x", "a", 1, "p")}},
	{name: "move, edit, update", mode: Everywhere, peers: 2, committed: "p", persons: persons{edits: 1}, plans: []plan{move("m", "b"), update("x", "q")}},
	{name: "adoption recovered while it is moved", mode: Everywhere, peers: 2, strangers: "a", crashes: 1, plans: []plan{adoption("x", "a"), move("m", "b")}},
	{name: "adoption, move", mode: Everywhere, peers: 3, strangers: "a", plans: []plan{adoption("x", "a"), after(1, move("m", "b"))}},
	{name: "move and edit", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, persons: persons{edits: 1}, plans: []plan{move("m", "b")}},
	{name: "join, adoption", peers: 3, ring: 2, changes: changes(joinC), strangers: "b", plans: []plan{known(2, adoption("x", "b"))}},
}

// adoptDeep are more of these configurations. Their exploration takes longer.
var adoptDeep = []config{
	{name: "4a person at a, add at b, adoption", peers: 2, strangers: "a", sweepers: 1, timeouts: 1, crashes: 1,
		plans: []plan{add("y", "b", 2, "q"), adoption("x", "a")}},
	{name: "4a persons create, add, adoption", peers: 2, sweepers: 1, persons: persons{creates: 1, edits: 1},
		plans: []plan{add("y", "b", 2, "q"), adoption("x", "a")}},
	{name: "4b person at a deletes again, adoption, add at b", peers: 2, strangers: "a", sweepers: 1, timeouts: 1, persons: persons{withdrawals: 1, edits: 1},
		plans: []plan{adoption("x", "a"), add("y", "b", 2, "q")}},
	{name: "4c persons at a and b, both adopted", peers: 2, strangers: "ab", sweepers: 1, timeouts: 1, crashes: 1, persons: persons{withdrawals: 1, creates: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "b")}},
	{name: "4d one object, two adopters, duplicates", peers: 2, strangers: "a", sweepers: 1, duplicates: 2, persons: persons{edits: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "a")}},
	{name: "4d one object, two adopters, timeout, crash", peers: 2, strangers: "a", timeouts: 1, crashes: 1, persons: persons{withdrawals: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "a")}},
	{name: "4e 3 peers, persons at a and b, b deletes, both adopted", peers: 3, strangers: "ab", sweepers: 1, persons: persons{withdrawals: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "b")}},
	{name: "4f claimless account adopted, updated, removed", mode: Everywhere, peers: 2, strangers: "a", timeouts: 1,
		plans: []plan{adoption("x", "a"), update("v", "q"), removal("r")}},
	{name: "4g claimless accounts at a and b, adopted, removed", mode: Everywhere, peers: 2, strangers: "ab", sweepers: 1, persons: persons{withdrawals: 1, creates: 1},
		plans: []plan{adoption("x", "a"), adoption("y", "b"), removal("r")}},
	{name: "4h claimless account edited while adopted, removed", mode: Everywhere, peers: 2, strangers: "a", sweepers: 1, persons: persons{edits: 2},
		plans: []plan{adoption("x", "a"), removal("r")}},
	{name: "4h claimless account edited, adopted, crash", mode: Everywhere, peers: 2, strangers: "a", sweepers: 1, timeouts: 1, crashes: 1, persons: persons{edits: 1, withdrawals: 1},
		plans: []plan{adoption("x", "a")}},
	{name: "3 peers, claimless account edited, adopted", mode: Everywhere, peers: 3, strangers: "a", timeouts: 1, persons: persons{edits: 1},
		plans: []plan{adoption("x", "a")}},
	{name: "removal, a person creates, adoption", peers: 2, committed: "p", sweepers: 1, persons: persons{creates: 1, withdrawals: 1},
		plans: []plan{removal("r"), adoption("x", "b")}},
	{name: "account removal, a person creates, adoption", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{creates: 1},
		plans: []plan{removal("r"), adoption("x", "b")}},
	{name: "live add and adoption", peers: 2, lease: live, persons: persons{creates: 1}, timeouts: 1,
		plans: []plan{retrying(add("y", "b", 2, "q")), adoption("x", "a")}},
	{name: "adoption, denials, a finalizer, expiries", peers: 2, strangers: "a", sweepers: 1, denials: 1, foreign: 1, expiries: 1, timeouts: 1,
		persons: persons{withdrawals: 1}, plans: []plan{adoption("x", "a")}},
	{name: "adoption, two timeouts, expiry, edit", peers: 2, strangers: "a", timeouts: 2, expiries: 1, crashes: 1, persons: persons{edits: 1, withdrawals: 1},
		plans: []plan{adoption("x", "a")}},
	{name: "move, edits, sweep", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 2}, plans: []plan{move("m", "b")}},
	{name: "join, account adoption, edit", mode: Everywhere, peers: 3, ring: 2, changes: changes(joinC), strangers: "b", timeouts: 1, persons: persons{edits: 1},
		plans: []plan{known(2, adoption("x", "b"))}},
	{name: "edits, two updates, a timeout", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, persons: persons{edits: 2},
		plans: []plan{update("x", "q"), update("y", "s")}},
	{name: "edit, update, timeout, crash, sweep", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, timeouts: 1, crashes: 1, persons: persons{edits: 1},
		plans: []plan{update("x", "q")}},
	{name: "edits, two sweeps, kubectl delete", mode: Everywhere, peers: 2, committed: "p", sweepers: 2, deletes: 1, persons: persons{edits: 2}},
	{name: "edits, removal, timeout, crash", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, timeouts: 1, crashes: 1, persons: persons{edits: 2},
		plans: []plan{removal("r")}},
	{name: "edits, two equal accounts", mode: Everywhere, peers: 2, timeouts: 1, persons: persons{edits: 1},
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "p"))}},
	{name: "3 peers, edits, update", mode: Everywhere, peers: 3, committed: "p", sweepers: 1, persons: persons{edits: 1}, plans: []plan{update("x", "q")}},
	{name: "edits, update, denials, bump", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, denials: 1, bumps: 1, expiries: 1, persons: persons{edits: 1},
		plans: []plan{update("x", "q")}},
	{name: "join, edit, update", mode: Everywhere, peers: 3, ring: 2, changes: changes(joinC), committed: "p", persons: persons{edits: 1}, plans: []plan{update("x", "q")}},
}

var adoptMutants = []broken{
	{n: "N31", rule: "an adoption is never Reserved", cfg: config{
		peers: 2, strangers: "a", sweepers: 1, plans: []plan{adoption("x", "a")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskAdopt {
				c.Object.Stage, c.Object.Finalizer = Reserved, false
			}
			return c
		}, answer: func(c Command) (Reply, bool) {
			return Reply{Class: Applied, Code: OK}, c.Verb == Activate
		}, over: func(_ *world, p *proc) {
			if !p.sweep {
				p.m.Result.Ending, p.m.Result.Keep = InDoubt, true
			}
		}},
	}, want: "I9"},
	{n: "N32", rule: "an adoption's guards come before its claim", cfg: config{
		peers: 2, strangers: "ab", plans: []plan{adoption("x", "a")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == claiming {
				p.m.enter(committing)
				adoptJob{p.m}.claimMet()
				return p.m.take()
			}
			return cmds
		}},
	}, want: "I1"},
	{n: "N49", rule: "content comes from the primary", cfg: config{
		mode: Everywhere, peers: 2, strangers: "a", persons: persons{edits: 1}, plans: []plan{adoption("x", "a")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if s := p.strand(c); c.Verb == Put && s.Task == taskBring && s.Step == stepPut {
				c.Object.Payload = s.X.Payload
			}
			return c
		}},
	}, want: "I7"},
	{rule: "an adoption is refused if the object has changed", cfg: config{
		peers: 2, strangers: "a", persons: persons{edits: 1}, plans: []plan{adoption("x", "a")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskAdopt {
				c.RV = ""
			}
			return c
		}},
	}, want: "I9"},
	{rule: "the guards of an object without a claim are alive", cfg: config{
		peers: 2, strangers: "a", sweepers: 1, plans: []plan{adoption("x", "a")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskJudge && s.Step == stepPrimary && !r.Object.Claimed {
				return refused(NotFound)
			}
			return r
		}},
	}, want: "I2"},
	{rule: "a secondary of revision 0 takes any content", cfg: config{
		mode: Everywhere, peers: 2, strangers: "a", persons: persons{edits: 1}, plans: []plan{adoption("x", "a")},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Create && p.strand(c).Task == taskAcquire {
				c.Object.Revision.Number = 1
			}
			return c
		}},
	}, want: "I2"},
	{rule: "a join guards objects without a claim", cfg: config{
		peers: 3, ring: 2, changes: changes(joinC), strangers: "b", plans: []plan{known(2, adoption("x", "b"))}, mutant: mutant{told: func(_ *world, _ *proc, _ Command, r Reply) Reply {
			r.Found = slices.DeleteFunc(slices.Clone(r.Found), func(f Found) bool { return !f.Object.Claimed })
			return r
		}},
	}, want: "I2"},
	{rule: "an adoption that may have been committed is not aborted", cfg: config{
		peers: 2, strangers: "a", timeouts: 1, persons: persons{withdrawals: 1}, plans: []plan{adoption("x", "a"), removal("r")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.m.Result.Ending == Ended {
				p.m.Result.Ending = Aborted
			}
		}},
	}, want: "I4"},
	{rule: "K19 a replica shows no edit that is not committed", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 1}, plans: []plan{update("x", "q")},
		mutant: mutant{reply: unseenEdit(taskBring)},
	}, want: "I7"},
	{rule: "K19 the revision of an edit is of exactly that edit", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, persons: persons{edits: 2},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskAccept {
				c.RV = ""
			}
			return c
		}},
	}, want: "K19"},
	{rule: "K19 an update does not overwrite an edit that came between", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", persons: persons{edits: 1}, plans: []plan{update("x", "q")},
		mutant: mutant{reply: unseenEdit(taskRevise)},
	}, want: "K19"},
	{rule: "all claims of one object name the same operation", cfg: config{
		mode: Everywhere, peers: 3, strangers: "a", plans: []plan{adoption("x", "a"), after(1, move("m", "b"))},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Create && c.Peer == "c" {
				c.Object.Claim.Operation = p.op.ID
			}
			return c
		}},
	}, want: "I2"},
	{rule: "K19 a home yields with its committed content", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", persons: persons{edits: 1}, plans: []plan{move("m", "b")},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskYield {
				c.Object.Revision, c.Object.History = p.m.Primary.Revision, p.m.Primary.History
			}
			return c
		}},
	}, want: "I7"},
}

// unseenEdit returns a mutant in which tasks of kind j do not notice that a person has edited the
// home (the primary of an Everywhere object).
func unseenEdit(j task) func(*world, *proc, Command, Reply) Reply {
	return func(_ *world, p *proc, c Command, r Reply) Reply {
		if p.strand(c).Task == j && c.Verb == Read && r.Object.Edited() {
			r.Object.Digest = r.Object.Revision.Digest
		}
		return r
	}
}
