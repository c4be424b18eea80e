// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// returns are peers that were given up and come back with what others replaced
// or removed meanwhile. They are explored always.
var returns = []config{
	{name: "a home was replaced, its peer comes back", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true,
		allSucceed: true, reads: true, changes: changes(forceB, returnB)},
	{name: "a home was replaced, its peer comes back, crash", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true,
		crashes: 1, changes: changes(forceB, returnB)},
	{name: "an account is removed while a peer comes back", mode: Everywhere, peers: 2, committed: "p", givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{removal("r")}},
	{name: "a peer comes back with a removal under way", peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true, lease: live, deletes: 1,
		changes: changes(forceB, returnB), plans: []plan{known(1, add("y", "a", 2, "q"))}},
}

// returnMutants break the rules for what such a peer holds.
var returnMutants = []broken{
	{rule: "a home that was replaced is judged by the term of its successor", want: "L1", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true, allSucceed: true, changes: changes(forceB, returnB),
		mutant: mutant{change: func(_ *world, _ *proc, c Command) Command {
			if c.Verb == Sub && c.Sub.Action == Resign {
				sweep := *c.Sub
				sweep.Action = Sweep
				c.Sub = &sweep
			}
			return c
		}},
	}},
	{rule: "nothing comes into force for a home that was given up", want: "I7", cfg: config{
		mode: Everywhere, peers: 3, committed: "p", committedAt: 2, sweepers: 1, deletes: 1, changes: changes(forceB),
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Step == "vouch" {
				r.PeerSet.Departed = nil
			}
			return r
		}},
	}},
	{rule: "what a peer holds that comes back is judged again once all know it", want: "I7", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", givenUp: true, inTurn: true, changes: changes(forceB, returnB), plans: []plan{removal("r")},
		mutant: mutant{told: unlisted(chPlacing, func(o Object) bool { return !o.Primary(Everywhere) })},
	}},
	{rule: "a removal that a peer comes back with is ended by who lets it join", want: "a slot", cfg: config{
		peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true, lease: live, deletes: 1,
		changes: changes(forceB, returnB), plans: []plan{known(1, add("y", "a", 2, "q"))},
		mutant: mutant{told: func(w *world, p *proc, c Command, r Reply) Reply {
			for _, phase := range []changePhase{chSettling, chCovering, chPlacing} {
				r = unlisted(phase, Object.Leaving)(w, p, c, r)
			}
			return r
		}},
	}},
	{n: "N40", rule: "what was home in a peer that leaves stays until nothing names it", want: "I", cfg: config{
		mode: Everywhere, peers: 3, committed: "p", sweepers: 1, crashes: 1, changes: changes(leaveA),
		mutant: mutant{
			told: func(_ *world, p *proc, c Command, r Reply) Reply {
				if c.Verb == Survey && (p.change.m.Phase == chDraining || p.change.m.Phase == chEmptying) {
					r.Found = slices.Clone(r.Found)
					for i := range r.Found {
						r.Found[i].Object = letGo(r.Found[i].Object)
					}
				}
				return r
			},
			reply: func(_ *world, p *proc, _ Command, r Reply) Reply {
				if p.op.Action == Discard {
					r.Object = letGo(r.Object)
				}
				return r
			},
			command: func(w *world, p *proc, c Command) Command {
				if at := &w.store.cells[0]; p.op.Action == Discard && c.Verb == Delete && at.obj != nil {
					at.obj = new(letGo(*at.obj))
				}
				return c
			},
		},
	}},
}

// letGo is what was home as if nothing held it.
func letGo(o Object) Object {
	if !o.Primary(Everywhere) {
		o.Finalizer, o.Home.Yielded = false, false
	}
	return o
}
