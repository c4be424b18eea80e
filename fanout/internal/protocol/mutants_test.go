// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// mutants break the rules that operations on one name follow.
var mutants = []broken{
	{n: "N1", rule: "the primary is created first", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{handled: allAtOnce, named: true},
	}, want: "I2"},
	{n: "N3", rule: "a pending primary is fenced before its secondaries go", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskJudge && s.Step == stepPrimary && r.Object.Pending() {
				return refused(NotFound)
			}
			return r
		}},
	}, want: "I2"},
	{n: "N5", rule: "the commit has preconditions", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskCommit {
				c.UID, c.RV = "", ""
			}
			return c
		}},
	}, want: "the claim is immutable"},
	{n: "N7", rule: "the primary's UID tells incarnations apart", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskAcquire && s.Step == stepRead && r.Object.Claim.Of.Peer == p.op.Target {
				r.Object.Claim.Operation, r.Object.Claim.Of = p.op.ID, p.m.Record.Primary
			}
			return r
		}},
	}, want: "I2"},
	{n: "N9", rule: "an object that a read did not find may still be created", cfg: config{
		peers: 2, sweepers: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			p.m.Adrift = false
			for peer, c := range p.m.Claims {
				c.Unsure = false
				p.m.Claims[peer] = c
			}
			return cmds
		}},
	}, want: "I8"},
	{n: "N10", rule: "AlreadyExists may be one's own", cfg: config{
		peers: 2, lease: live, timeouts: 1, exactlyOne: true, plans: []plan{retrying(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskAcquire && s.Step == stepRead && r.Object.Claim.Operation == p.op.ID {
				r.Object.Claim.Operation = "?"
			}
			return r
		}},
	}, want: "L1", live: true},
	{n: "N11", rule: "a commit of unknown result is in doubt", cfg: config{
		peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == committing && p.m.Unsure {
				p.m.Result.Keep = true
				p.m.end(Aborted)
				return p.m.take()
			}
			return cmds
		}},
	}, want: "I4"},
	{n: "N12", rule: "a delete has preconditions", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Delete && p.m.Phase == cleaning {
				c.UID, c.RV = "", ""
			}
			return c
		}},
	}, want: "I2"},
	{n: "N13", rule: "the older of two goes first", cfg: config{
		peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "q"))},
		mutant: mutant{reply: func(_ *world, p *proc, _ Command, r Reply) Reply {
			if r.Object.Pending() && r.Object.Claim.Operation != p.op.ID {
				r.Object.Claim.Start = -1
			}
			return r
		}},
	}, want: "L1", live: true},
	{n: "N18", rule: "the log comes first", cfg: config{
		peers: 2, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{command: func(_ *world, _ *proc, c Command) Command {
			if c.Verb == Begin {
				c.Verb = ReadPeerSet
			}
			return c
		}},
	}, want: "I8"},
	{n: "N20", rule: "the primary of a removal goes last", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == clearing {
				removeJob{p.m}.empty()
				return p.m.take()
			}
			return cmds
		}},
	}, want: "I7"},
	{n: "N23", rule: "a sweep reads the secondary first", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{stale: true},
	}, want: "I2"},
	{n: "N24", rule: "an activation reads the replica first", cfg: config{
		mode: Everywhere, peers: 2, sweepers: 1, duplicates: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); p.sweep && s.Task == taskBring && s.Step == stepPrimary {
				return Reply{Class: Applied, Code: OK, Object: p.op.Met}
			}
			return r
		}},
	}, want: "I7"},
	{n: "N25", rule: "a secondary is born Reserved", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, deletes: 1, plans: []plan{removal("r")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Create && p.m.Phase == bringing {
				c.Object.Stage = Active
			}
			return c
		}},
	}, want: "I7"},
	{n: "N26", rule: "ended is not aborted", cfg: config{
		peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.m.Result.Ending == Ended {
				p.m.Result.Ending = Aborted
			}
		}},
	}, want: "I4"},
	{n: "N27", rule: "a primary remembers its revisions", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{
			reply: func(_ *world, p *proc, c Command, r Reply) Reply {
				if p.strand(c).Task == taskRevise && r.Object.Revision.Operation != p.op.ID {
					r.Object.History = nil
				}
				return r
			},
			over: func(_ *world, p *proc) {
				if p.m.Result.Ending == Ended {
					p.m.Result.Ending = Aborted
				}
			},
		},
	}, want: "I4"},
	{n: "N28", rule: "no commit on a terminating primary", cfg: config{
		peers: 2, sweepers: 1, foreign: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskCommit {
				r.Object.Terminating = false
			}
			return r
		}},
	}, want: "K7"},
	{n: "N29", rule: "a fence has the resource version", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Delete && p.strand(c).Step == stepFence {
				c.RV = ""
			}
			return c
		}},
	}, want: "I3"},
	{n: "N30", rule: "a removal skips no replica", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskClear && c.Verb == Read && r.Code == Unavailable {
				r.Class, r.Code = NotApplied, NotFound
			}
			return r
		}},
	}, want: "I7"},
	{n: "N46", rule: "an activation has the resource version", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskBring {
				c.RV = ""
			}
			return c
		}},
	}, want: "I7: the revision falls"},
	{n: "N47", rule: "a heartbeat has the resource version", cfg: config{
		peers: 2, lease: 2, beats: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskBeat {
				c.RV = ""
			}
			return c
		}},
	}, want: "stage Reserved after Configured"},
	{n: "N48", rule: "guards go after the removal is committed", cfg: config{
		peers: 2, committed: "p", plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == committing && p.m.Op.Action == Remove {
				removeJob{p.m}.clear()
				return p.m.take()
			}
			return cmds
		}},
	}, want: "I4"},
	{n: "N33", rule: "an update reads the members after its commit", cfg: config{
		mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, committed: "p", plans: []plan{update("x", "q")},
		mutant: mutant{reply: earlyMembers(finding, taskLook)},
	}, want: "STALE"},
	{n: "N34", rule: "a removal reads the members after its commit", cfg: config{
		mode: Everywhere, peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, committed: "p", plans: []plan{removal("r")},
		mutant: mutant{reply: earlyMembers(finding, taskLook)},
	}, want: "I7"},
	{n: "N15", rule: "an add reads the members after its primary was created", cfg: config{
		peers: 3, ring: 2, changes: []ChangeOperation{change("j", Join, "c")}, plans: []plan{known(2, add("x", "b", 1, "p"))},
		mutant: mutant{reply: earlyMembers(beginning, taskPeerSet)},
	}, want: "I2"},
}

// earlyMembers returns a mutant in which the tasks of the kind used read outdated PeerSets: those
// that the peers had in the phase read.
func earlyMembers(read Phase, used task) func(*world, *proc, Command, Reply) Reply {
	return func(w *world, p *proc, c Command, r Reply) Reply {
		if p.m.Phase == read {
			for i, at := range w.store.cells {
				if at.set != nil {
					p.m.Sets["early "+peerName(i)] = *at.set
				}
			}
		}
		if early, ok := p.m.Sets["early "+c.Peer]; ok && p.strand(c).Task == used && c.Verb == ReadPeerSet && !p.sweep {
			r.PeerSet = early
		}
		return r
	}
}

// allAtOnce is a mutant that takes the name in all peers in parallel.
func allAtOnce(p *proc, cmds []Command) []Command {
	m := p.m
	if m.Phase != reserving || m.Op.Action != Add {
		return cmds
	}
	m.Record.Primary = Ref{Peer: m.Op.Target, UID: "u-" + m.Op.ID}
	m.enter(claiming)
	for _, peer := range m.Op.Peers {
		m.spawn(taskAcquire, peer)
		m.spawn(taskPeerSet, peer)
	}
	return m.take()
}
