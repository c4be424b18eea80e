// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// moveMutants break the rules that hold while a home moves: the object has one home, and no
// committed revision is lost.
var moveMutants = []broken{
	{"N36", "a home yields before the next one takes its place", config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			m := p.m
			if m.Phase != committing || m.Op.Action != Move || m.Strands[0].Step != stepPut || m.Strands[0].Seq > 1 {
				return cmds
			}
			m.astray(m.Primary.yieldedTo(m.Record.Elect), m.Record.Primary.Peer)
			findJob{m}.regain()
			return m.take()
		}},
	}, "I1", false},
	{"N36", "the next home copies the content and the history of the last one", config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{move("m", "b"), update("x", "q")},
		mutant: mutant{command: func(w *world, p *proc, c Command) Command {
			if s := p.strand(c); s.Task == taskFollow && s.Step == stepFinish {
				own := w.store.cells[w.store.index(c.Peer)].obj
				c.Object.Payload, c.Object.Revision, c.Object.History = own.Payload, own.Revision, own.History
			}
			return c
		}},
	}, "I10: revision 2", false},
	{"N36", "a home that has yielded takes its place back, and is not judged", config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, deletes: 1, plans: []plan{move("m", "b")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if s := p.strand(c); s.Task == taskJudge {
				s.X.Home.Yielded = false
			}
			return c
		}},
	}, "I3", false},
	{"N46", "an activation by an earlier home has the resource version", config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, plans: []plan{move("m", "b"), update("x", "q")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskBring {
				c.RV = ""
			}
			return c
		}},
	}, "the term of a home", false},
	{"", "a former home is kept until no replica names it", config{
		mode: Everywhere, peers: 3, committed: "p", deletes: 1, plans: []plan{move("m", "b")},
		mutant: mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskBring {
				c.Object.Finalizer = false
			}
			return c
		}},
	}, "I7", false},
	{"", "an update that meets a home which has yielded decides by the next one's history", config{
		mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{move("m", "b"), update("x", "q")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.op.Action == Update && p.m.Turns > 0 {
				p.m.Result.Ending = Aborted
			}
		}},
	}, "I4", false},
	{"", "an add whose primary is gone looks for another home before it says ended", config{
		mode: Everywhere, peers: 2, crashes: 1, deletes: 1, plans: []plan{add("x", "a", 1, "p"), move("m", "b")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			p.m.Searched = true
			return cmds
		}},
	}, "I4", false},
	{"", "a removal releases former homes in the order of their terms", config{
		mode: Everywhere, peers: 3, committed: "p", moved: "bc", plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			m := p.m
			for _, s := range slices.Clone(m.Strands) {
				if m.Phase == clearing && slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Task == taskRetire }) && s.X.former(Everywhere) && !(retireJob{m}).retiring(s.Peer) {
					m.Strands = append(m.Strands, Strand{Task: taskRetire, Peer: s.Peer, X: s.X})
					m.step(len(m.Strands)-1, Reply{})
				}
			}
			return append(cmds, m.take()...)
		}},
	}, "I7: the active replica in a has no primary", false},
	{"", "a committed object is found by its claim", config{
		mode: Everywhere, peers: 2, plans: []plan{add("x", "a", 1, "p"), move("m", "b"), after(2, removal("r"))},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.op.Action == Add && p.m.Phase == finding {
				p.m.Record.Origin = ""
			}
			return cmds
		}},
	}, "I4: x says aborted and was committed", false},
	{"", "Active replicas of a departed home are not dead", config{
		mode: Everywhere, peers: 3, committed: "p", sweepers: 1, changes: changes(forceA),
		mutant: mutant{
			answer: func(c Command) (Reply, bool) { return refused(NoSuchPeer), c.Verb == Read && c.Peer == "a" },
			reply: func(_ *world, p *proc, c Command, r Reply) Reply {
				if s := p.strand(c); s.Task == taskJudge && s.Step == stepStray {
					r.PeerSet.Change = Slot{}
				}
				return r
			},
		},
	}, "I3", false},
	{"", "the replica elected after a loss gets the latest revision of all replicas", config{
		mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{update("x", "q")},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if s := p.strand(c); s.Task == taskCrown {
				c.Object.Payload, c.Object.Revision, c.Object.History = s.X.Payload, s.X.Revision, nil
			}
			return c
		}},
	}, "I10", false},
	{"", "a removal does not touch an object with a later home", config{
		mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{removal("r")},
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if s := p.strand(c); p.op.Action == Remove && s.Task == taskClear && c.Verb == Read {
				p.m.Primary.Home.Term = 2 * generation
			}
			return c
		}},
	}, "I2", false},
	{"", "replicas name the elected one before it becomes home", config{
		mode: Everywhere, peers: 3, committed: "p", changes: changes(forceA), plans: []plan{update("x", "q")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			m := p.m
			if m.Phase != freezing {
				return cmds
			}
			succeedJob{m}.afterFreezing()
			return m.take()
		}},
	}, "I", false},
	{"", "a move reports the reservation that has the name in its target", config{
		mode: Everywhere, peers: 2, committed: "p", duplicates: 1, deletes: 1, plans: []plan{add("z", "b", 1, "q"), move("m", "b")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.op.Action == Move {
				p.m.Result.Holder, p.m.Result.HolderAt = Object{}, ""
			}
		}},
	}, "L1", true},
}
