// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// comeback returns a configuration with an add at B that is in progress when B is removed by force,
// and continues when B has rejoined. The sweeper does not have a removed peer configured.
func comeback(m mutant) config {
	return config{
		peers: 2, lease: live, sweepers: 1, givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{add("x", "b", 1, "p")}, mutant: m,
	}
}

// comebackMutants break the rules for a rejoining peer. The rules about the objects that it owns
// are in changeMutants.
//
// No mutant leaves out only the state Quarantined, which marks the peer before its objects are
// settled, because such a mutant breaks nothing. The peer gets the state Joining before any member
// lists it, and an add whose target is the peer reads the peer's state after the add's primary
// exists.
var comebackMutants = []broken{
	{n: "N39", rule: "reservations in a rejoining peer are fenced", want: "I2", cfg: comeback(mutant{
		told: func(w *world, p *proc, c Command, r Reply) Reply {
			pending := func(o Object) bool { return o.Pending() && o.Primary(w.cfg.mode) }
			return unlisted(chPlacing, pending)(w, p, c, unlisted(chSettling, pending)(w, p, c, r))
		},
	})},
	{n: "N39", rule: "a rejoining peer is marked before its objects are settled", want: "I2", cfg: comeback(mutant{
		change: func(_ *world, p *proc, c Command) Command {
			if c.Verb == PutPeerSet && p.change.op.Kind == Return && c.Peer == p.change.op.Peer {
				set := *c.Set
				set.Self.State = peerActive
				c.Set = &set
			}
			return c
		},
		told: func(_ *world, p *proc, c Command, r Reply) Reply {
			if m := p.change.m; c.Verb == ReadPeerSet && m.Phase == chTelling && c.Peer == p.change.op.Peer {
				r.PeerSet.Self.State = peerJoining
			}
			return r
		},
	})},
	{n: "N39", rule: "a secondary that outlived its peer's absence is written anew", want: "I2", cfg: config{
		peers: 2, committed: "p", committedAt: 2, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB),
		mutant: mutant{command: func(_ *world, p *proc, c Command) Command {
			if c.Verb == Put && p.strand(c).Step == stepRenew {
				c.Verb, c.Object = Read, Object{}
			}
			return c
		}},
	}},
}

// departureMutants break the rules that keep objects from being left in a leaving peer. More of
// these rules are in changeMutants.
var departureMutants = []broken{
	{n: "N37", rule: "an activation reads the members after the replica", want: "I7", cfg: departure(mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepMembers && p.m.HaveSet {
				r.PeerSet = p.m.Set
			}
			return r
		},
	})},
	{n: "N40", rule: "a leaving peer is dropped before it is emptied", want: "I7", cfg: departure(mutant{
		told: func(w *world, p *proc, c Command, r Reply) Reply {
			if at := &w.store.cells[w.store.index("b")]; c.Verb == Survey && p.change.m.Phase == chDraining && at.obj != nil && !at.obj.Primary(w.cfg.mode) {
				at.obj = nil
			}
			return unlisted(chEmptying, func(Object) bool { return true })(w, p, c, r)
		},
	})},
}

// departure returns a configuration in which a peer leaves while a sweep (a check and repair of all
// peers) may create an Account's replica in that peer, and a removal removes the Account.
func departure(m mutant) config {
	return config{
		mode: Everywhere, peers: 2, committed: "p", sweepers: 1, changes: changes(change("l", Leave, "b")), plans: []plan{removal("r")}, mutant: m,
	}
}
