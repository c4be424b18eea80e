// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutants are the rules of the protocol, each with what the model finds when it
// is broken. They show that the exploration would notice.
var mutants = []struct {
	rule string
	cfg  config
	want string
	live bool // it breaks liveness only
}{
	{"the primary is created first", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{handled: allAtOnce, named: true},
	}, "I2", false},
	{"a pending primary is fenced before its secondaries go", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Job == jobJudge && s.Step == "primary" && r.Object.Pending() {
				return refused(NotFound)
			}
			return r
		}},
	}, "I2", false},
	{"the commit has preconditions", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Job == jobCommit {
				c.UID, c.RV = "", ""
			}
			return c
		}},
	}, "the claim is immutable", false},
	{"the primary's UID tells incarnations apart", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Job == jobAcquire && s.Step == "read" && r.Object.Claim.Of.Peer == p.op.Target {
				r.Object.Claim.Operation, r.Object.Claim.Of = p.op.ID, p.m.Record.Primary
			}
			return r
		}},
	}, "I2", false},
	{"what was read as absent may have been created", config{
		peers: 2, sweepers: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			p.m.Adrift = false
			for peer, c := range p.m.Claims {
				c.Unsure = false
				p.m.Claims[peer] = c
			}
			return cmds
		}},
	}, "I8", false},
	{"AlreadyExists may be one's own", config{
		peers: 2, lease: live, timeouts: 1, exactlyOne: true, plans: []plan{retrying(add("x", "a", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Job == jobAcquire && s.Step == "read" && r.Object.Claim.Operation == p.op.ID {
				r.Object.Claim.Operation = "?"
			}
			return r
		}},
	}, "L1", true},
	{"a commit of unknown result is in doubt", config{
		peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == committing && p.m.Unsure {
				p.m.Result.Keep = true
				p.m.end(Aborted)
				return p.m.take()
			}
			return cmds
		}},
	}, "I4", false},
	{"a delete has preconditions", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "a", 2, "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Delete && p.m.Phase == cleaning {
				c.UID, c.RV = "", ""
			}
			return c
		}},
	}, "I2", false},
	{"the older of two goes first", config{
		peers: 2, lease: live, exactlyOne: true,
		plans: []plan{retrying(add("x", "a", 1, "p")), retrying(add("y", "b", 2, "q"))},
		mutant: mutant{reply: func(_ *world, p *proc, _ Command, r Reply) Reply {
			if r.Object.Pending() && r.Object.Claim.Operation != p.op.ID {
				r.Object.Claim.Start = -1
			}
			return r
		}},
	}, "L1", true},
	{"the log comes first", config{
		peers: 2, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{command: func(_ *world, _ *proc, c Command) Command {
			if c.Verb == Begin {
				c.Verb = ReadPeerSet
			}
			return c
		}},
	}, "I8", false},
	{"the primary of a removal goes last", config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == clearing {
				p.m.empty()
				return p.m.take()
			}
			return cmds
		}},
	}, "I7", false},
	{"a sweep reads the secondary first", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{stale: true},
	}, "I2", false},
	{"an activation reads the replica first", config{
		mode: Everywhere, peers: 2, sweepers: 1, duplicates: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); p.sweep && s.Job == jobBring && s.Step == "primary" {
				return Reply{Class: Applied, Code: OK, Object: p.op.Met}
			}
			return r
		}},
	}, "I7", false},
	{"a secondary is born Reserved", config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, deletes: 1, plans: []plan{removal("r")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Create && p.m.Phase == bringing {
				c.Object.Stage = Active
			}
			return c
		}},
	}, "I7", false},
	{"ended is not aborted", config{
		peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.m.Result.Ending == Ended {
				p.m.Result.Ending = Aborted
			}
		}},
	}, "I4", false},
	{"a primary remembers its revisions", config{
		mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{
			reply: func(_ *world, p *proc, c Command, r Reply) Reply {
				if p.strand(c).Job == jobRevise && r.Object.Revision.Operation != p.op.ID {
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
	}, "I4", false},
	{"no commit on a terminating primary", config{
		peers: 2, sweepers: 1, foreign: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Job == jobCommit {
				r.Object.Terminating = false
			}
			return r
		}},
	}, "K7", false},
	{"a fence has the resource version", config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Delete && p.strand(c).Step == "fence" {
				c.RV = ""
			}
			return c
		}},
	}, "I3", false},
	{"a removal skips no replica", config{
		mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Job == jobClear && c.Verb == Read && r.Code == Unavailable {
				r.Class, r.Code = NotApplied, NotFound
			}
			return r
		}},
	}, "I7", false},
	{"an activation has the resource version", config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Job == jobBring {
				c.RV = ""
			}
			return c
		}},
	}, "I7: the revision falls", false},
	{"a heartbeat has the resource version", config{
		peers: 2, lease: 2, beats: 1, timeouts: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Job == jobBeat {
				c.RV = ""
			}
			return c
		}},
	}, "stage Reserved after Configured", false},
	{"guards go after the removal is committed", config{
		peers: 2, committed: "p", plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == committing && p.m.Op.Action == Remove {
				p.m.clear()
				return p.m.take()
			}
			return cmds
		}},
	}, "I2", false},
	{"an update reads the members after its commit", config{
		mode: Everywhere, peers: 3, join: true, committed: "p", sweepers: 1, plans: []plan{update("x", "q")},
		mutant: mutant{reply: earlyMembers(finding, jobLook)},
	}, "STALE", false},
	{"a removal reads the members after its commit", config{
		mode: Everywhere, peers: 3, join: true, committed: "p", sweepers: 1, plans: []plan{removal("r")},
		mutant: mutant{reply: earlyMembers(finding, jobLook)},
	}, "I7", false},
	{"an add reads the members after its primary was created", config{
		peers: 3, join: true, plans: []plan{known(2, add("x", "b", 1, "p"))},
		mutant: mutant{reply: earlyMembers(beginning, jobPeerSet)},
	}, "I2", false},
}

// earlyMembers gives a job the membership as it was in an earlier phase.
func earlyMembers(read Phase, used job) func(*world, *proc, Command, Reply) Reply {
	return func(w *world, p *proc, c Command, r Reply) Reply {
		if p.m.Phase == read {
			for i, at := range w.store.cells {
				p.m.Sets["early "+peerName(i)] = *at.set
			}
		}
		if p.strand(c).Job == used && c.Verb == ReadPeerSet && !p.sweep {
			r.PeerSet = p.m.Sets["early "+c.Peer]
		}
		return r
	}
}

// allAtOnce takes the name in all peers in parallel.
func allAtOnce(p *proc, cmds []Command) []Command {
	m := p.m
	if m.Phase != reserving || m.Op.Action != Add {
		return cmds
	}
	m.Record.Primary = Ref{Peer: m.Op.Target, UID: "u-" + m.Op.ID}
	m.enter(claiming)
	for _, peer := range m.Op.Peers {
		m.spawn(jobAcquire, peer)
		m.spawn(jobPeerSet, peer)
	}
	return m.take()
}

func TestMutants(t *testing.T) {
	for _, mutant := range mutants {
		t.Run(mutant.rule, func(t *testing.T) {
			mutant.cfg.name = mutant.rule
			e := exploration{cfg: mutant.cfg, limit: 300_000}
			if mutant.live {
				e.every = 1
			}
			trace := e.explore()
			require.NotEmpty(t, trace, "the exploration of %d states did not notice", e.states)
			first, _, _ := strings.Cut(trace, "\n")
			require.Contains(t, first, mutant.want, trace)
			t.Log(first)
		})
	}
}
