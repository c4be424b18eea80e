// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// blindly returns a mutant that ignores evidence (a secondary that proves the commit of its
// primary). If a task finds in one of steps that the primary is missing, the mutant marks the
// secondary as released, as if a person had permitted its deletion.
func blindly(mode Mode, steps ...step) mutant {
	return mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
		s := p.strand(c)
		for _, at := range steps {
			if s.Step == at && r.Code == NotFound || s.Step == at && r.Object.UID != s.X.Of(mode).UID {
				s.X.Released = true
			}
		}
		return r
	}}
}

// restoreMutants break the rules that preserve objects which a restored peer has forgotten.
var restoreMutants = []broken{
	{rule: "R14 a bound guard is not dead because its primary is missing", want: "SILENT", cfg: config{
		peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}, mutant: blindly(Once, stepJudge),
	}},
	{rule: "R14 a sweep leaves a bound guard whose primary is missing", want: "SILENT", cfg: config{
		peers: 2, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}, mutant: blindly(Once, stepPrimary),
	}},
	{rule: "R14 a replica in effect is not dead because its home is missing", want: "SILENT", cfg: config{
		mode: Everywhere, peers: 2, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")}, mutant: blindly(Everywhere, stepPrimary),
	}},
	{rule: "R14 a witness is a full member that holds nothing", want: "SILENT", cfg: config{
		peers: 3, restored: "a", sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Step == stepWitness {
				r = refused(NotFound)
			}
			return r
		}},
	}},
	{rule: "R15 guards are bound before an add is durable", want: "SILENT", cfg: config{
		peers: 2, restored: "a", plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{over: func(_ *world, p *proc) {
			if p.m.Record.Committed {
				p.m.Result.Ending, p.m.Result.Durable = Done, true
			}
		}, command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Task == taskSeal {
				c.Verb, c.Object = Read, Object{}
			}
			return c
		}},
	}},
	{rule: "R15 a guard is bound only while its primary is read committed after it", want: "I6", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p"), removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskSeal && s.Step == stepVerify {
				r.Code, r.Object = OK, p.m.Primary
			}
			return r
		}},
	}},
	{rule: "R13 an equal number of another operation confirms nothing", want: "LIE", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", restored: "a", plans: []plan{update("x", "q"), update("y", "s")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepPrimary && s.X.Revision.Number == r.Object.Revision.Number {
				s.X.Revision = r.Object.Revision
			}
			return r
		}},
	}},
	{rule: "R17 an update is in effect only if its home remembers it", want: "LIE", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", restored: "a", plans: []plan{update("x", "q")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			p.m.Undone = false
			return cmds
		}, reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepPrimary && !r.Object.History.has("x") {
				r.Object.History = append(r.Object.History[:len(r.Object.History):len(r.Object.History)], Revision{Number: r.Object.Revision.Number, Operation: "x"})
			}
			return r
		}},
	}},
	{rule: "R17 a removal whose object stands again runs again", want: "rule: a removal", cfg: config{
		peers: 2, committed: "p", restored: "a", plans: []plan{removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskDrop && s.Step == stepRead && r.Code == OK {
				r.Object.Stage, r.Object.Terminating = Removing, true
			}
			return r
		}},
	}},
}
