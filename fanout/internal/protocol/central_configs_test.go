// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// takenTwice is a configuration in which two coordinators take over the record that decides an add.
// The record's creator got no reply to the create and still treats the record as its own.
var takenTwice = config{peers: 1, adopters: 2, retained: true, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p"))}}

// centralSmall are configurations with adds of the first release, which a record in a central log
// decides. Every run of the tests explores them.
var centralSmall = []config{
	titled("a record taken over twice, whose maker does not know", takenTwice),
	{name: "central add", peers: 2, sweepers: 1, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "central add, crash, adopter", peers: 2, adopters: 1, crashes: 1, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "central account", mode: Everywhere, peers: 2, adopters: 1, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "two live central adds, two targets", peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(central(add("x", "a", 1, "p"))), retrying(central(add("y", "b", 2, "q")))}},
	{name: "two live central accounts, same content", mode: Everywhere, peers: 2, lease: live, allSucceed: true,
		plans: []plan{retrying(central(add("x", "a", 1, "p"))), retrying(central(add("y", "b", 2, "p")))}},
	{name: "a central account, a peer joins that its maker does not know", mode: Everywhere, peers: 2, ring: 1,
		changes: []ChangeOperation{change("j", Join, "b")}, plans: []plan{known(1, central(add("x", "a", 1, "p")))}},
	{name: "a central add, a peer leaves", peers: 2, crashes: 1,
		changes: []ChangeOperation{change("l", Leave, "b")}, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "a central add, its target leaves", peers: 2, crashes: 1,
		changes: []ChangeOperation{change("l", Leave, "b")}, plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central add, a peer is lost", peers: 2, givenUp: true, crashes: 1,
		changes: []ChangeOperation{change("f", Force, "b")}, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "a central add, its target is lost", peers: 2, crashes: 1,
		changes: []ChangeOperation{change("f", Force, "b")}, plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central account, a peer is lost", mode: Everywhere, peers: 2, givenUp: true, crashes: 1,
		changes: []ChangeOperation{change("f", Force, "b")}, plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "a central account, its target is lost", mode: Everywhere, peers: 2, crashes: 1,
		changes: []ChangeOperation{change("f", Force, "b")}, plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central add, its target is given up", peers: 2, givenUp: true, crashes: 1, changes: changes(forceB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central account, its target is given up", mode: Everywhere, peers: 2, givenUp: true, crashes: 1,
		changes: changes(forceB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central add, its target comes back", peers: 2, lease: live, givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central account, its target comes back", mode: Everywhere, peers: 2, lease: live, givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))}},
	lateToNewcomer(mutant{}),
	{name: "a central account, removal, a late create", mode: Everywhere, peers: 2, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p")), removal("r")}},
	{name: "a central add, begun again when it is over", peers: 2, adopters: 1, denials: 1, duplicates: 1, twice: Propose,
		plans: []plan{central(add("x", "a", 1, "p"))}},
}

var centralDeep = []config{
	{name: "5a central X@A, Y@B", peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "5a central X@A, Y@B, adopter", peers: 2, adopters: 1, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "5b central X@A, Y@B, duplicates", peers: 2, duplicates: 1,
		plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "5c central X@A, Y@A, duplicates of records", peers: 2, adopters: 1, duplicates: 1, twice: Propose,
		plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "a", 2, "q"))}},
	{name: "5d central X@A, Y@B, 3 peers", peers: 3, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "5e central X@A, removal, duplicates", peers: 2, sweepers: 1, duplicates: 1,
		plans: []plan{central(add("x", "a", 1, "p")), removal("r")}},
	{name: "5e central X@A, removal, duplicates of records", peers: 2, adopters: 1, duplicates: 1, twice: Propose,
		plans: []plan{central(add("x", "a", 1, "p")), removal("r")}},
	{name: "5f central X@A, Y@B, removal", peers: 2, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q")), removal("r")}},
	{name: "5g central Y@B beside an older object, removal, duplicates", peers: 2, committed: "p", duplicates: 1,
		plans: []plan{central(add("y", "b", 2, "q")), removal("r")}},
	{name: "central add, timeout, crash, sweep, adopter", peers: 2, sweepers: 1, adopters: 1, timeouts: 1, crashes: 1,
		plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "central adds, a timeout, a crash", peers: 2, timeouts: 1, crashes: 1,
		plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "central add, removal, timeout, adopter", peers: 2, adopters: 1, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p")), removal("r")}},
	{name: "central X@A, Y@B, history kept", peers: 2, adopters: 1, retained: true, timeouts: 1,
		plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "central X@A, primary-first Y@B", peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p")), add("y", "b", 2, "q")}},
	{name: "central X@A, primary-first Y@A, adopter, timeout", peers: 2, adopters: 1, timeouts: 1,
		plans: []plan{central(add("x", "a", 1, "p")), add("y", "a", 2, "q")}},
	{name: "central account, sweep, crash, adopter", mode: Everywhere, peers: 2, sweepers: 1, adopters: 1, crashes: 1,
		plans: []plan{central(add("x", "a", 1, "p"))}},
	{name: "two central accounts, adopter", mode: Everywhere, peers: 2, adopters: 1,
		plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))}},
	{name: "central account, removal, duplicates, sweep", mode: Everywhere, peers: 2, sweepers: 1, duplicates: 1,
		plans: []plan{central(add("x", "a", 1, "p")), removal("r")}},
	{name: "central account, update, adopter", mode: Everywhere, peers: 2, adopters: 1, timeouts: 1,
		plans: []plan{central(add("x", "a", 1, "p")), update("v", "q")}},
	{name: "central account, its home moves and is deleted, crash", mode: Everywhere, peers: 2, crashes: 1, deletes: 1,
		plans: []plan{central(add("x", "b", 1, "p")), after(1, move("v", "a"))}},
	{name: "a central add, crash, its target comes back", peers: 2, lease: live, givenUp: true, inTurn: true, crashes: 1,
		changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central add, 3 peers, crash, its target comes back", peers: 3, lease: live, givenUp: true, inTurn: true, crashes: 1,
		changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central account, its target is given up, sweep, adopter", mode: Everywhere, peers: 2, givenUp: true, sweepers: 1, adopters: 1,
		changes: changes(forceB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "a central add, its target comes back, sweep, adopter", peers: 2, givenUp: true, inTurn: true, sweepers: 1, adopters: 1,
		changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "join, a central add", peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, plans: []plan{known(2, central(add("x", "b", 1, "p")))}},
}

// lateToNewcomer returns a configuration in which a peer joins while a create of a central add is
// in flight to that peer. The add has found the name taken.
func lateToNewcomer(m mutant) config {
	return config{
		name: "join, a late create of a central add", peers: 2, ring: 1, committed: "p", duplicates: 1, lease: live,
		changes: changes(change("j", Join, "b")), plans: []plan{central(add("z", "b", 1, "q"))}, mutant: m,
	}
}

// forward is a mutant in which adopters (processes that settle records) continue undecided adds
// instead of aborting them.
func forward(p *proc, cmds []Command) []Command {
	m := p.m
	if !p.adopter || p.plain || m.Phase != withdrawing || m.Withdrawn {
		return cmds
	}
	m.Claims, m.Result, m.Stopping, m.Resumed = map[string]Claimed{}, Result{}, false, false
	m.afterProposing()
	return m.take()
}

// beforeRecord is a mutant that claims the name before the create of the record is acknowledged.
func beforeRecord(p *proc, cmds []Command) []Command {
	m := p.m
	if m.Phase != proposing || m.Decision.UID != "" {
		return cmds
	}
	m.Decision.UID = "rec-" + m.Op.ID
	for _, peer := range m.Op.Peers {
		m.spawnFirst(taskAcquire, peer)
	}
	return append(cmds, m.take()...)
}

var centralMutants = []broken{
	{rule: "a record that was taken over is left to its holder, with its claims", want: "I3", cfg: with(takenTwice, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskWithdraw && r.Decision != nil && r.Decision.Taken {
				return refused(NotFound)
			}
			return r
		},
	})},
	{n: "N41", rule: "claims begin when their record was answered", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))},
		mutant: mutant{named: true, handled: beforeRecord},
	}, want: "I"},
	{n: "N42", rule: "a record outlives its undecided claims", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskBind {
				c.Verb = Read
			}
			return c
		}},
	}, want: "I2"},
	{n: "N43", rule: "a record names the target's UID", cfg: config{
		peers: 2, sweepers: 1, duplicates: 1, plans: []plan{central(add("x", "a", 1, "p")), removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.sweep && c.Verb == ReadRecord && r.Decision != nil {
				r.Decision.Of.UID = p.strand(c).X.UID
			}
			return r
		}},
	}, want: "I"},
	{n: "N44", rule: "no process rolls a pending record forward", cfg: config{
		peers: 2, adopters: 1, duplicates: 1, twice: Propose, plans: []plan{central(add("x", "a", 1, "p")), removal("r")},
		mutant: mutant{handled: forward},
	}, want: "I4"},
	{n: "N44", rule: "refused is not aborted once others roll forward", cfg: config{
		peers: 2, adopters: 1, plans: []plan{central(add("x", "a", 1, "p")), removal("r")},
		mutant: mutant{handled: forward},
	}, want: "I4"},
	{n: "N50", rule: "a decision is a put, never a create", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{upsert: true, blind: true},
	}, want: "I"},
	{rule: "no process forgets a pending record", cfg: config{
		peers: 2, adopters: 1, denials: 1, duplicates: 1, twice: Propose, plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskRecord && c.Verb == ReadRecord && r.Code == OK && p.m.Record.Committed {
				r.Decision.Committed, r.Decision.Of = true, p.m.Record.Primary
			}
			return r
		}},
	}, want: "forgotten"},
	{rule: "an account whose record is gone is looked for everywhere", cfg: config{
		mode: Everywhere, peers: 2, crashes: 1, deletes: 1, plans: []plan{central(add("x", "b", 1, "p")), after(1, move("v", "a"))},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase != inquiring || p.m.Result.Ending != Ended {
				return cmds
			}
			p.m.end(Ended)
			p.m.proceed()
			return p.m.take()
		}},
	}, want: "I4"},
	{rule: "a claim that was read after the commit is no replica that was read before it", cfg: config{
		mode: Everywhere, peers: 2, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p")), removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.m.Phase == binding && p.strand(c).Task == taskBind && c.Verb == Put && r.Class == Applied {
				p.m.Claims[c.Peer] = Claimed{Held: true}
			}
			return r
		}},
	}, want: "I7"},
	{rule: "no process changes a claim of a pending record", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.sweep && c.Verb == ReadRecord && r.Code == OK && !r.Decision.Committed {
				return refused(NotFound)
			}
			return r
		}},
	}, want: "I"},
	{rule: "an abort deletes only undecided claims of its own record", cfg: config{
		peers: 2, adopters: 1, duplicates: 1, twice: Propose, plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskClean && c.Verb == Read {
				r.Object.Bound, r.Object.Claim.Record = Ref{}, p.m.Decision.UID
			}
			return r
		}},
	}, want: "I2"},
	{rule: "a record ends without departed peers", cfg: config{
		mode: Everywhere, peers: 2, givenUp: true, crashes: 1, changes: []ChangeOperation{change("f", Force, "b")},
		plans: []plan{central(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.m.Phase == binding && p.strand(c).Task == taskLook {
				r.PeerSet.Departed = nil
			}
			return r
		}},
	}, want: "L2"},
	{rule: "a claim that obstructs the cover of a newcomer is judged by its record", cfg: lateToNewcomer(mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Step == stepRivalRecord {
				return refused(Unavailable)
			}
			return r
		},
	}), want: "a slot in a finds no end"},
	{rule: "a record ends when its target has departed", cfg: config{
		peers: 2, givenUp: true, crashes: 1, changes: changes(forceB), plans: []plan{central(add("x", "b", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskDeparted {
				r.PeerSet.Departed = nil
			}
			return r
		}},
	}, want: "L2"},
	{rule: "a record whose target does not answer stays until that has departed", cfg: config{
		peers: 2, denials: 1, plans: []plan{central(add("x", "b", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskDeparted {
				r.PeerSet = r.PeerSet.without(Departure{Peer: "b", How: "Forced"})
			}
			return r
		}},
	}, want: "I3"},
	{rule: "a target that comes back is settled by its record", cfg: config{
		peers: 2, lease: live, givenUp: true, inTurn: true, changes: changes(forceB, returnB), plans: []plan{central(add("x", "b", 1, "p"))},
		mutant: mutant{change: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Sub && p.change.m.Phase == chSettling && c.Sub.Met.Undecided() {
				discard := *c.Sub
				discard.Action = Discard
				c.Sub = &discard
			}
			return c
		}},
	}, want: "I3"},
	{rule: "a record that cannot be read decides nothing", cfg: config{
		peers: 2, timeouts: 1, plans: []plan{central(add("x", "a", 1, "p")), central(add("y", "b", 2, "q"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskAcquire && c.Verb == ReadRecord && r.Code == Unavailable {
				return refused(NotFound)
			}
			return r
		}},
	}, want: "I"},
}
