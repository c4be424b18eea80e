// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

var (
	// toLost has a move to a peer that is removed by force.
	toLost = config{mode: Everywhere, peers: 2, committed: "p", changes: changes(forceB), plans: []plan{move("m", "b")}}
	// toLostUnheard has a move to a peer that is removed by force, and a write or read without a reply.
	toLostUnheard = config{mode: Everywhere, peers: 2, committed: "p", timeouts: 1, changes: changes(forceB), plans: []plan{move("m", "b")}}
	// formerReturns has a former home in a peer that rejoins after the object was removed.
	formerReturns = config{mode: Everywhere, peers: 2, committed: "p", committedAt: 2, moved: "a", givenUp: true, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{removal("r")}}
	// updateAtLost has an update of a home in a peer that is removed by force and rejoins.
	updateAtLost = config{mode: Everywhere, peers: 2, committed: "p", committedAt: 2, inTurn: true,
		changes: changes(forceB, returnB), plans: []plan{update("x", "q")}}
	// removalAtLost has a removal of an object whose home is replaced, because the home's peer is
	// removed by force.
	removalAtLost = config{mode: Everywhere, peers: 2, committed: "p", committedAt: 2,
		changes: changes(forceB), plans: []plan{removal("r")}}
	// deletedMove has a home that has yielded (given up its place) to the replica in a peer that is
	// then lost. A person deletes this home.
	deletedMove = config{mode: Everywhere, peers: 2, committed: "p", deletes: 1, loss: loss{peer: "b"},
		changes: changes(forceB), plans: []plan{move("m", "b")}}
	// helpedForce has a removal of a peer by force in which one request gets no reply, and another process that
	// continues this removal meanwhile.
	helpedForce = config{mode: Everywhere, peers: 2, committed: "p", timeouts: 1, helpers: 1, sweepers: 1, loss: loss{peer: "a"},
		changes: changes(forceA)}
	// deletedHeir has a home that is lost with its peer, so another replica is elected as home. A
	// person deletes the elected replica, while only the replica in d, which is still Reserved,
	// names it as home.
	deletedHeir = config{mode: Everywhere, peers: 4, committed: "p", committedAt: 2, late: "d", bumps: 1, deletes: 1,
		changes: changes(forceB)}
)

// lostHomes are configurations in which homes move, change or are removed while a peer is removed
// by force. Every run of the tests explores them.
var lostHomes = []config{
	titled("a move to a peer that is given up", toLost),
	titled("a move to a peer that is given up, a lost reply", toLostUnheard),
	titled("a former home comes back after the removal", formerReturns),
	titled("an update where a home was replaced", updateAtLost),
	titled("a removal where a home was replaced", removalAtLost),
	titled("a home that yielded to a lost peer is deleted", deletedMove),
	titled("the replica elected after a loss is deleted", deletedHeir),
	titled("a removal by force loses an answer, and is helped", helpedForce),
}

// lostHomeMutants break the rules for homes that are lost or replaced.
var lostHomeMutants = []broken{
	{rule: "a home is affirmed when a peer is given up", want: "I", cfg: with(toLost, mutant{
		change: func(_ *world, _ *proc, c Command) Command {
			if c.Verb == Sub && c.Sub.Action == Succeed && c.Sub.Met.Primary(Everywhere) {
				c = instead(c, Sweep)
			}
			return c
		},
	})},
	{rule: "a home that has changed yields to a member only", want: "I", cfg: with(toLost, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskYield && s.Step == stepMembers {
				r.PeerSet = r.PeerSet.with(Member{Peer: "b", State: peerActive})
			}
			return r
		},
	})},
	{rule: "who gave its place up and comes back does not take it back", want: "I", cfg: with(formerReturns, mutant{
		change: func(_ *world, _ *proc, c Command) Command {
			if c.Verb == Sub && c.Sub.Action == Resign {
				c = instead(c, Sweep)
			}
			return c
		},
	})},
	{rule: "a rejoining peer confirms no update", want: "STALE", cfg: with(updateAtLost, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskLook {
				r.PeerSet.Self.State = peerActive
			}
			return r
		},
	})},
	{rule: "a home that is being deleted is elected again if no other replica can be", want: "I6", cfg: with(deletedMove, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskSurvey && r.Object.Terminating {
				r.Object.Finalizer = false
			}
			return r
		},
	})},
	{rule: "a Reserved replica names the elected one, too", want: "the term of a home", cfg: with(deletedHeir, mutant{
		reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.strand(c).Task == taskSurvey && r.Object.Stage == Reserved {
				r.Object.Home = Home{}
			}
			return r
		},
	})},
}

// with returns cfg with mutant m.
func with(cfg config, m mutant) config {
	cfg.mutant = m
	return cfg
}

// instead returns command c with another action in place of the one that a change requests for a
// listed object.
func instead(c Command, action Action) Command {
	sub := *c.Sub
	sub.Action = action
	c.Sub = &sub
	return c
}
