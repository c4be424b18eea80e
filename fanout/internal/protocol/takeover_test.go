// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// takeable adds the takeovers of process i. It may take over the entries of live processes too,
// because it may be wrong about which processes are alive.
func (w *world) takeable(i int, add func(k kind, a, b int)) {
	for j, q := range w.procs[:len(w.cfg.plans)] {
		if q.begun && !q.taken && !q.op.Central && (q.m != nil || q.state == crashed) {
			add(actTake, i, j)
		}
	}
}

// take writes process i into the entry of process j, and lets i settle the operation. j
// finds out at its next write of the entry.
func (w *world) take(i, j int) {
	p, q := w.own(i), w.own(j)
	q.taken = true
	if q.m == nil {
		q.state = done
	}
	p.op, p.begun, p.record = q.op, true, cloneRecord(q.record)
	w.recover(i)
}

// taken returns cfg with another coordinator that may take over a log entry.
func taken(cfg config) config {
	cfg.takers = 1
	return cfg
}

var takeoversSmall = []config{
	taken(config{name: "an add taken over, a timeout", peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p")}}),
	taken(config{name: "an account taken over", mode: Everywhere, peers: 2, expiries: 1, plans: []plan{add("x", "a", 1, "p")}}),
	taken(config{name: "an update taken over, a bump, a deadline", mode: Everywhere, peers: 2, committed: "p", bumps: 1, expiries: 1, plans: []plan{update("x", "q")}}),
	taken(config{name: "a removal taken over, a bump, a deadline", peers: 2, committed: "p", bumps: 1, expiries: 1, plans: []plan{removal("r")}}),
	taken(config{name: "a removal taken over, a denial", peers: 2, committed: "p", denials: 1, plans: []plan{removal("r")}}),
	taken(config{name: "a move taken over, a deadline", mode: Everywhere, peers: 2, committed: "p", expiries: 1, plans: []plan{move("v", "b")}}),
	taken(config{name: "an adoption taken over, a deadline", peers: 2, persons: persons{creates: 1}, expiries: 1, plans: []plan{adoption("x", "a")}}),
	{name: "central X@A, primary-first Y@A", peers: 2, plans: []plan{central(add("x", "a", 1, "p")), add("y", "a", 2, "q")}},
	{name: "central account, primary-first Y@B", mode: Everywhere, peers: 2, plans: []plan{central(add("x", "a", 1, "p")), add("y", "b", 2, "q")}},
}

var takeoversDeep = []config{
	{name: "central X@A, primary-first Y@A, one log", peers: 2, adopters: 1, takers: 1, plans: []plan{central(add("x", "a", 1, "p")), add("y", "a", 2, "q")}},
	{name: "central X@A, primary-first Y@B, one log", peers: 2, adopters: 1, takers: 1, plans: []plan{central(add("x", "a", 1, "p")), add("y", "b", 2, "q")}},
	{name: "central X@A, primary-first Y@B, one log, crash", peers: 2, adopters: 1, takers: 1, crashes: 1, plans: []plan{central(add("x", "a", 1, "p")), add("y", "b", 2, "q")}},
	{name: "central account, primary-first Y@B, one log", mode: Everywhere, peers: 2, adopters: 1, takers: 1,
		plans: []plan{central(add("x", "a", 1, "p")), add("y", "b", 2, "q")}},
	taken(config{name: "two adds, one taken over, a timeout", peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}}),
	taken(config{name: "an add taken over, sweep, crash", peers: 2, sweepers: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p")}}),
	taken(config{name: "two updates, one taken over, a timeout", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{update("x", "q"), update("y", "s")}}),
	taken(config{name: "a removal taken over, an update, a timeout", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{removal("r"), update("x", "q")}}),
	taken(config{name: "an account taken over, a removal, a timeout", mode: Everywhere, peers: 2, timeouts: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")}}),
	{name: "an add taken over twice, a deadline", peers: 2, takers: 2, expiries: 1, plans: []plan{add("x", "a", 1, "p")}},
}

// sure is a mutant that makes an operation return Aborted although another coordinator has taken it
// over.
func sure(_ *world, p *proc) {
	if p.m.Result.Reason == TakenOver && p.m.Result.Ending == InDoubt {
		p.m.Result.Ending, p.m.Result.Keep = Aborted, false
	}
}

var takeoverMutants = []broken{
	{rule: "an update that another has taken over is not aborted", cfg: config{
		mode: Everywhere, peers: 2, takers: 1, committed: "p", bumps: 1, expiries: 1, plans: []plan{update("x", "q")}, mutant: mutant{over: sure},
	}, want: "I4"},
	{rule: "a removal that another has taken over is not aborted", cfg: config{
		peers: 2, takers: 1, committed: "p", bumps: 1, expiries: 1, plans: []plan{removal("r")}, mutant: mutant{over: sure},
	}, want: "I4"},
	{rule: "an adoption that another has taken over is not aborted", cfg: config{
		peers: 2, takers: 1, persons: persons{creates: 1}, expiries: 1, plans: []plan{adoption("x", "a")}, mutant: mutant{over: sure},
	}, want: "I4"},
	{rule: "an operation that another has taken over sends no commit", cfg: config{
		peers: 2, takers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.taken && c.Verb == Advance {
				return Reply{Class: Applied, Code: OK}
			}
			return r
		}},
	}, want: "I4"},
	// The former owner of the entry has deleted the primary, and left a guard to which only the
	// entry leads.
	{rule: "a removal that finds its primary gone clears the guards all the same", cfg: config{
		peers: 2, takers: 1, committed: "p", denials: 1, plans: []plan{removal("r")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == clearing && p.m.Primary.UID == "" {
				p.m.end(Done)
				return p.m.take()
			}
			return cmds
		}},
	}, want: "I6"},
}
