// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

var (
	// lateLeave has a peer that leaves and joins again, while another process works on the leave.
	lateLeave = config{mode: Everywhere, peers: 2, committed: "p", inTurn: true, helpers: 1, changes: changes(leaveB, change("j", Join, "b"))}
	// moveToNewcomer has a move to a peer that joins, and a removal of the object.
	moveToNewcomer = config{mode: Everywhere, peers: 2, ring: 1, committed: "p", changes: changes(change("j", Join, "b")),
		plans: []plan{move("m", "b"), removal("r")}}
)

// returnsDeep are configurations like those in returns, whose exploration takes longer.
var returnsDeep = []config{
	titled("a move to a peer that joins, removal", moveToNewcomer),
	{name: "a move to a peer that is given up and comes back, removal", states: 2_500_000, mode: Everywhere, peers: 2, committed: "p", inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{move("m", "b"), removal("r")}},
}

// returns are configurations in which a peer is removed by force, or leaves, and is a member again
// later. Other processes may have replaced or removed its objects meanwhile. Every run of the tests
// explores them.
var returns = []config{
	{name: "a home was replaced, its peer comes back", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true,
		allSucceed: true, reads: true, changes: changes(forceB, returnB)},
	{name: "a home was replaced, its peer comes back, crash", mode: Everywhere, peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true,
		crashes: 1, changes: changes(forceB, returnB)},
	{name: "an account is removed while a peer comes back", mode: Everywhere, peers: 2, committed: "p", givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{removal("r")}},
	{name: "a peer comes back with a removal under way", peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true, lease: live, deletes: 1,
		changes: changes(forceB, returnB), plans: []plan{known(1, add("y", "a", 2, "q"))}},
	titled("a peer leaves and joins again, a late helper", lateLeave),
}

// returnMutants break the rules for the objects in a peer that rejoins after a removal by force.
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
			if p.strand(c).Step == stepVouch {
				r.PeerSet.Departed = nil
			}
			return r
		}},
	}},
	{rule: "objects of a rejoining peer are judged again once all members list it", want: "I7", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", givenUp: true, inTurn: true, changes: changes(forceB, returnB), plans: []plan{removal("r")},
		mutant: mutant{told: func(w *world, p *proc, c Command, r Reply) Reply {
			secondary := func(o Object) bool { return !o.Primary(Everywhere) }
			return unlisted(chPlacing, secondary)(w, p, c, unlisted(chSettling, secondary)(w, p, c, r))
		}},
	}},
	{rule: "a late driver of a leave takes nothing from a peer that is a member again", want: "I2", cfg: with(lateLeave, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Step == stepSet && p.op.Action == Discard {
				r.PeerSet.Self.State = peerOut
			}
			return r
		},
	})},
	{rule: "a replica comes into force in who was a member before its home was read", want: "I7", cfg: with(moveToNewcomer, mutant{
		command: func(w *world, p *proc, c Command) Command {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepMembers {
				if home := w.store.cells[w.store.index(c.Peer)].obj; home != nil {
					s.Y = *home
				}
			}
			return c
		},
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepPrimary && s.Y.Claimed {
				return Reply{Class: Applied, Code: OK, Object: s.Y}
			}
			return r
		},
	})},
	{rule: "the join of a peer ends the removals that the peer had begun", want: "a slot", cfg: config{
		peers: 2, committed: "p", committedAt: 2, givenUp: true, inTurn: true, lease: live, deletes: 1,
		changes: changes(forceB, returnB), plans: []plan{known(1, add("y", "a", 2, "q"))},
		mutant: mutant{told: func(w *world, p *proc, c Command, r Reply) Reply {
			if r.Result.Holder.Leaving() {
				r.Result.HolderAt = ""
			}
			for _, phase := range []changePhase{chSettling, chCovering, chPlacing} {
				r = unlisted(phase, Object.Leaving)(w, p, c, r)
			}
			return r
		}},
	}},
	{n: "N40", rule: "a former home in a leaving peer stays until no replica names it", want: "I", cfg: config{
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

// letGo returns former home o without our finalizer and as not yielded, and any other object
// unchanged.
func letGo(o Object) Object {
	if !o.Primary(Everywhere) {
		o.Finalizer, o.Home.Yielded = false, false
	}
	return o
}
