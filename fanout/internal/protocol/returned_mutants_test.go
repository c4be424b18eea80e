// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// cameBack returns a configuration in which a removal is under way while the peer with the
// object's primary is restored from a backup and rejoins.
func cameBack(mode Mode, m mutant) config {
	return config{
		mode: mode, peers: 2, committed: "p", restored: "a", detected: true, changes: changes(returnA), plans: []plan{removal("r")}, mutant: m,
	}
}

// updatedBack returns a configuration with an update of an Account, in which the home's peer is
// restored and comes back.
func updatedBack(m mutant) config {
	cfg := cameBack(Everywhere, m)
	cfg.plans = []plan{update("x", "q")}
	return cfg
}

// returnedMutants break the rules by which a restored peer comes back.
var returnedMutants = []broken{
	{rule: "R3 a peer that was found restored is not believed before it is back", want: "I4: x says aborted", cfg: config{
		peers: 2, restored: "a", detected: true, crashes: 1, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{trusting: true},
	}},
	{rule: "R5 each secondary that names a peer which comes back is written once more", want: "I2", cfg: cameBack(Once, mutant{
		command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Step == stepRenew {
				c.Verb, c.Object = Read, Object{}
			}
			return c
		},
	})},
	{rule: "R6 a removal reads the guard, then the primary, then deletes", want: "I2", cfg: cameBack(Once, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskClear && s.Step == stepPrimary {
				r.Object = p.m.Primary // as it was read before the guard
			}
			return r
		},
	})},
	{rule: "R6 a removal reads the replica, then the home, then deletes", want: "I2", cfg: cameBack(Everywhere, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskClear && s.Step == stepPrimary {
				r.Object = p.m.Primary
			}
			return r
		},
	})},
	{rule: "R7 reservations in a restored peer are fenced", want: "I7", cfg: config{
		mode: Everywhere, peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{told: func(w *world, p *proc, c Command, r Reply) Reply {
			pending := func(o Object) bool { return o.Claim.Primary && o.Pending() }
			return unlisted(chPlacing, pending)(w, p, c, unlisted(chSettling, pending)(w, p, c, r))
		}},
	}},
	{rule: "R8 a restored owner counts only if every other member holds it", want: "UNDONE", cfg: cameBack(Once, mutant{
		change: subs(func(op *Operation) { op.Prove = false }),
	})},
	{rule: "R9 a bound guard whose primary is forgotten is lost, and stays", want: "SILENT", cfg: config{
		peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{told: func(_ *world, p *proc, c Command, r Reply) Reply {
			if c.Verb == Survey && c.Peer != p.change.op.Peer {
				r.Found = slices.Clone(r.Found)
				for i := range r.Found {
					r.Found[i].Object.Bound = Ref{}
				}
			}
			return r
		}},
	}},
	{rule: "R10 primaries of the members get guards in a peer that comes back", want: "I7", cfg: config{
		mode: Everywhere, peers: 2, restored: "a", detected: true, changes: changes(returnA), plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{told: unlisted(chCovering, anything)},
	}},
	{rule: "R10 primaries of a peer that comes back get guards in the members", want: "I2", cfg: cameBack(Once, mutant{
		told: unlisted(chPlacing, anything),
	})},
	{rule: "R11 secondaries in a peer that comes back prove nothing", want: "finds no end", cfg: cameBack(Everywhere, mutant{
		change: subs(func(op *Operation) { op.Doubted = "" }),
	})},
	{rule: "R12 the later of two revisions becomes the home's", want: "finds no end", cfg: updatedBack(mutant{
		handled: func(p *proc, cmds []Command) []Command {
			p.m.Forked = Object{}
			return cmds
		},
	})},
}

func anything(Object) bool { return true }

// subs returns a mutant that edits the operations that a change of the membership runs.
func subs(edit func(*Operation)) func(*world, *proc, Command) Command {
	return func(_ *world, _ *proc, c Command) Command {
		if c.Verb == Sub {
			op := *c.Sub
			edit(&op)
			c.Sub = &op
		}
		return c
	}
}
