// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// losses are configurations with peers that go down and are removed by force. Every run of the
// tests explores them.
var losses = []config{
	{name: "a record's target is lost and configured nowhere any more", peers: 2, loss: loss{peer: "b"}, changes: changes(forceB),
		plans: []plan{central(add("x", "b", 1, "p"))}},
	{name: "B is lost while D joins", peers: 4, ring: 3, loss: loss{peer: "b"}, changes: changes(joinD, forceB)},
	{name: "A is lost while D joins", peers: 4, ring: 3, loss: loss{peer: "a"}, changes: changes(joinD, forceA)},
	{name: "B is lost while D joins, an account", mode: Everywhere, peers: 4, ring: 3, committed: "p", loss: loss{peer: "b"}, changes: changes(joinD, forceB)},
	{name: "B is lost while A leaves", peers: 3, loss: loss{peer: "b"}, changes: changes(leaveA, forceB)},
	{name: "C is lost while A leaves", peers: 3, loss: loss{peer: "c"}, changes: changes(leaveA, forceC)},
	{name: "A is lost while B leaves", peers: 3, loss: loss{peer: "a"}, changes: changes(leaveB, forceA)},
	{name: "A is lost while D joins, answers after all, crash", peers: 4, ring: 3, crashes: 1, loss: loss{peer: "a", returns: true}, changes: changes(joinD, forceA)},
}

// lossesDeep are configurations like those in losses, whose exploration takes longer.
var lossesDeep = []config{
	{name: "C is lost while A leaves, and comes back", peers: 3, loss: loss{peer: "c", returns: true}, changes: changes(leaveA, forceC, returnC)},
	{name: "A is lost while B leaves, and joins again", peers: 3, loss: loss{peer: "a", returns: true}, changes: changes(leaveB, forceA, change("h", Join, "a"))},
	{name: "B is lost while D joins, and comes back", peers: 4, ring: 3, loss: loss{peer: "b", returns: true}, changes: changes(joinD, forceB, returnB)},
	{name: "C is lost while A leaves, crash", peers: 3, crashes: 1, loss: loss{peer: "c"}, changes: changes(leaveA, forceC)},
	{name: "A is lost while D joins, crash", peers: 4, ring: 3, crashes: 1, loss: loss{peer: "a"}, changes: changes(joinD, forceA)},
}

// lossMutants break the rules for changes that are cut short by the loss of a peer.
var lossMutants = []broken{
	{rule: "a departed peer need not be configured", want: "L2", cfg: config{
		peers: 2, loss: loss{peer: "b"}, changes: changes(forceB), plans: []plan{central(add("x", "b", 1, "p"))},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskDeparted {
				r.PeerSet.Departed = slices.DeleteFunc(slices.Clone(r.PeerSet.Departed), func(d Departure) bool {
					return !slices.Contains(p.op.Peers, d.Peer)
				})
			}
			return r
		}},
	}},
	{rule: "a newcomer that one member lists is listed by all after a removal by force", want: "I11", cfg: config{
		peers: 4, ring: 3, loss: loss{peer: "a"}, changes: changes(joinD, forceA),
		mutant: mutant{change: func(w *world, p *proc, c Command) Command {
			if c.Verb == PutPeerSet && p.change.op.Kind == Force {
				set, at := *c.Set, w.store.cells[w.store.index(c.Peer)].set
				set.Members = slices.DeleteFunc(slices.Clone(set.Members), func(m Member) bool { return !slices.Contains(at.Members, m) })
				c.Set = &set
			}
			return c
		}},
	}},
	{rule: "a change whose anchor had left begins anew at another", want: "a slot in a", cfg: config{
		peers: 3, loss: loss{peer: "c"}, changes: changes(leaveA, forceC),
		mutant: mutant{told: func(_ *world, p *proc, c Command, r Reply) Reply {
			if c.Verb == ReadPeerSet && p.change.op.ID == "f" && r.PeerSet.left("a") {
				r.PeerSet = r.PeerSet.without(Departure{Peer: "a", How: "Forced"})
			}
			return r
		}},
	}},
	{rule: "a leave does not wait for a peer that other members dropped", want: "a slot in a", cfg: config{
		peers: 3, loss: loss{peer: "c"}, changes: changes(leaveA, forceC),
		mutant: mutant{told: func(_ *world, p *proc, c Command, r Reply) Reply {
			if c.Verb == ReadPeerSet && p.change.op.Kind == Leave && r.PeerSet.Gone("c") {
				r.PeerSet = r.PeerSet.with(Member{Peer: "c", UID: "kc", State: peerActive})
			}
			return r
		}},
	}},
}
