// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// changeMutants break the rules of changes of the membership.
var changeMutants = []broken{
	{n: "N16", rule: "a member lists the newcomer before its primaries are listed", cfg: config{
		peers: 3, ring: 2, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p"))},
		mutant: mutant{told: func(w *world, p *proc, c Command, r Reply) Reply {
			ch := p.change
			switch {
			case c.Verb == Survey && ch.m.Phase == chSettling:
				for i, at := range w.store.cells {
					if at.obj != nil {
						ch.early = append(ch.early, Found{Key: peerName(i), Mode: w.cfg.mode, Object: *at.obj})
					}
				}
			case c.Verb == Survey && ch.m.Phase == chCovering:
				r.Found = slices.DeleteFunc(slices.Clone(ch.early), func(f Found) bool { return f.Key != c.Peer })
			}
			return r
		}},
	}, want: "I2"},
	{n: "N17", rule: "reservations get a guard in a newcomer", cfg: config{
		peers: 3, ring: 2, changes: changes(joinC), plans: []plan{known(2, add("x", "a", 1, "p"))},
		mutant: mutant{told: unlisted(chCovering, func(o Object) bool { return o.Stage == Reserved })},
	}, want: "I2"},
	{n: "N35", rule: "there is one change at a time", cfg: config{
		peers: 4, ring: 2, lease: live, changes: changes(joinC, joinD),
		mutant: mutant{told: func(_ *world, p *proc, c Command, r Reply) Reply {
			if m := p.change.m; c.Verb == ReadPeerSet && r.PeerSet.Change.ID != "" && !m.holds(r.PeerSet) {
				r.PeerSet.Change = m.slot()
			}
			return r
		}},
	}, want: "I11"},
	{n: "N38", rule: "a leaving peer is marked before it is drained", cfg: config{
		peers: 3, lease: live, changes: changes(leaveC), plans: []plan{add("x", "c", 1, "p")},
		mutant: mutant{
			change: func(_ *world, p *proc, c Command) Command {
				if p.change.m.Phase == chMarking && c.Verb == PutPeerSet {
					set := *c.Set
					set.Self.State = peerActive
					c.Set = &set
				}
				return c
			},
			told: func(_ *world, p *proc, c Command, r Reply) Reply {
				if p.change.m.Phase == chDropping && c.Peer == p.change.op.Peer {
					r.PeerSet.Self.State = peerLeaving
				}
				return r
			},
		},
	}, want: "OUT"},
	{n: "N38", rule: "an add asks whether its target is a full member", cfg: config{
		peers: 3, lease: live, changes: changes(leaveC), plans: []plan{add("x", "c", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if c.Verb == ReadPeerSet && p.strand(c).Task == taskPeerSet && c.Peer == p.op.Target {
				r.PeerSet.Self.State = peerActive
			}
			return r
		}},
	}, want: "OUT"},
	{n: "N39", rule: "objects of a rejoining peer are guarded before it is a member", cfg: config{
		peers: 2, committedAt: 2, committed: "p", lease: live, changes: changes(forceB, returnB), plans: []plan{known(1, add("y", "a", 2, "q"))},
		mutant: mutant{told: unlisted(chPlacing, func(Object) bool { return true })},
	}, want: "I"},
	{n: "N40", rule: "a leaving peer is emptied last", cfg: config{
		mode: Everywhere, peers: 3, committed: "p", sweepers: 1, changes: changes(leaveC), plans: []plan{removal("r")},
		mutant: mutant{told: unlisted(chEmptying, func(Object) bool { return true })},
	}, want: "I7"},
	{n: "N37", rule: "an activation reads the members again", cfg: config{
		mode: Everywhere, peers: 3, committed: "p", sweepers: 1, changes: changes(leaveC), plans: []plan{removal("r")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskBring && s.Step == stepMembers && !r.PeerSet.Lists(s.Peer) {
				r.PeerSet = r.PeerSet.with(Member{Peer: s.Peer, State: peerActive})
			}
			return r
		}},
	}, want: "I7"},
}

// unlisted returns a mutant that hides some objects from the lists that a change reads in phase:
// those for which the function what returns true.
func unlisted(phase changePhase, what func(Object) bool) func(*world, *proc, Command, Reply) Reply {
	return func(_ *world, p *proc, c Command, r Reply) Reply {
		if c.Verb == Survey && p.change.m.Phase == phase {
			r.Found = slices.DeleteFunc(slices.Clone(r.Found), func(f Found) bool { return what(f.Object) })
		}
		return r
	}
}
