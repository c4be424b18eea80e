// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"
)

// generation is the distance between the terms of a home and of the one that
// was made in its absence. Moves add one or two to a term; a departed home may
// have moved some times more than those who replace it can know, and their terms
// must not meet.
const generation = 1 << 20

func nextGeneration(term int64) int64 { return (term/generation + 1) * generation }

// succeed gives an object whose home was lost with its peer another one, among
// the members Into: first every replica is made to name the heir, so that
// nothing that is under way from the old home can reach it any more; then the
// heir becomes home with the latest revision that any of them has. It may be
// repeated, by anybody, at any time: a run that cannot go on with an earlier one
// uses a later generation, which wins.
func (m *Machine) succeed() {
	if m.Turns++; m.Turns > takeovers {
		m.because(Contended, m.Op.Target)
		m.pend(m.Op.Target)
		m.end(Done)
		return
	}
	m.Astray = false
	m.Result.Holder, m.Result.HolderAt = Object{}, ""
	if met := m.Op.Met; m.Turns == 1 && met.Primary(Everywhere) && met.InEffect() {
		m.affirm(met, m.Op.Target)
		return
	}
	m.enter(surveying)
	for _, p := range m.Op.Into {
		m.spawn(jobSurvey, p)
	}
}

// affirm writes home o in peer once more, with a sign of life. Whoever moves it
// read it before the members, so that a move to a peer which they had then and
// have no more is void.
func (m *Machine) affirm(o Object, peer string) {
	m.Record.Elect = Ref{Peer: peer, UID: o.UID}
	m.enter(crowning)
	m.Strands = append(m.Strands, Strand{Job: jobCrown, Peer: peer, X: o})
	m.step(0, Reply{})
}

// stepSurvey reads what the strand's peer has.
func (m *Machine) stepSurvey(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step == "void":
		m.voided(i, r)
	case s.Step == "home" && r.Code == OK:
		s.Y = r.Object
		m.finish(i)
	case s.Step != "read" && s.Step != "home":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case r.Code == OK && m.awaits(r.Object):
		m.void(i, r.Object)
	case r.Code == OK && r.Object.Claim.Operation == m.Op.Met.Claim.Operation:
		s.X = r.Object
		if home := s.X.Of(Everywhere); m.Op.Doubted != "" && home.Peer == m.Op.Doubted {
			// It is read after X: a process that is late with the comeback may meet what was
			// added there since.
			m.send(i, "home", Command{Verb: Read, Peer: home.Peer})
			return
		}
		m.finish(i)
	case r.Code == OK, r.Code == NotFound:
		// It has nothing, or something else.
		if o := r.Object; m.Op.Doubted != "" && o.Primary(Everywhere) && o.InEffect() {
			m.Result.Holder, m.Result.HolderAt = o, s.Peer
		}
		m.finish(i)
	case r.Code == Denied, r.Code == NoSuchPeer, !m.again(i, "retry"):
		m.unconfirmed(i)
	}
}

// frozen says that o, a replica of an object whose home was lost, names an heir
// that perhaps is not home yet. Only who replaces the home may make it one, or
// name another.
func (o Object) frozen() bool { return o.Home.Yielded && o.Home.Term%generation == 0 }

// inForce says whether o is in force in its peer, as home or as a replica.
func (o Object) inForce() bool { return o.Claimed && o.Stage == Active }

func (m *Machine) afterSurveying() {
	if len(m.Result.Pending) > 0 {
		// Who does not answer may have the latest revision.
		m.end(Done)
		return
	}
	held := map[string]Object{}
	var top, home Object
	var at string
	exists := false
	for _, s := range m.Strands {
		held[s.Peer] = s.X
		exists = exists || s.X.Claimed && s.X.Stage != Reserved
		if s.X.Claimed && (!top.Claimed || s.X.term() > top.term() || s.X.term() == top.term() && top.Stage == Reserved) {
			top, at, home = s.X, s.Peer, s.Y
		}
	}
	if !exists {
		// Nothing of it is in force anywhere, so its reservations are dead.
		m.because(Missing, m.Op.Target)
		m.end(Done)
		return
	}
	of := top.Of(Everywhere)
	if home.Claimed && home.UID == of.UID {
		m.end(Done) // it was not forgotten
		return
	}
	if m.Result.HolderAt != "" {
		// It was removed, and what a restore brought back was brought to members before
		// anybody noticed: that is deleted.
		m.freeze(Ref{}, 0)
		return
	}
	heir, lives := held[of.Peer]
	lives = lives && heir.UID == of.UID
	switch {
	case lives && heir.Primary(Everywhere) && heir.term() >= top.term() && heir.InEffect() && m.Op.Met.Primary(Everywhere):
		m.affirm(heir, of.Peer)
	case lives && heir.Primary(Everywhere) && heir.term() >= top.term():
		m.heir(heir, of.Peer)
	case top.yielded(Everywhere) && !top.frozen() && slices.Contains(m.Op.Into, of.Peer):
		// It moves among those who are left.
		m.astray(top, at)
		m.regain()
	case lives && !heir.Terminating && top.frozen() && heir.term() < top.term():
		m.freeze(of, top.term())
	case !slices.Contains(m.Op.Into, of.Peer), top.frozen(), !lives && top.Stage == Reserved:
		m.choose(held, nextGeneration(top.term()))
	default:
		// The home was made, or has moved, between the reads.
		m.succeed()
	}
}

// choose makes the first member that has the object in force its heir. If all
// that have it were told to delete it, the first that was home is one: our
// finalizer holds it already, and its removal goes on.
func (m *Machine) choose(held map[string]Object, term int64) {
	for _, going := range []bool{false, true} {
		for _, p := range slices.Sorted(slices.Values(m.Op.Into)) {
			if o := held[p]; o.inForce() && o.Terminating == going && (!going || o.Finalizer) {
				m.freeze(Ref{Peer: p, UID: o.UID}, term)
				return
			}
		}
	}
	m.because(Missing, m.Op.Target)
	m.end(Done)
}

// freeze makes every replica but the heir's name the heir. If another object has the name
// there is none, and they are deleted.
func (m *Machine) freeze(heir Ref, term int64) {
	survey := m.Strands
	m.enter(freezing)
	m.Record.Elect, m.Record.Term = heir, term
	for _, s := range survey {
		if s.X.Claimed && (s.X.Stage != Reserved || !s.X.Primary(Everywhere)) {
			m.Strands = append(m.Strands, Strand{Job: jobFreeze, Peer: s.Peer, X: s.X})
			m.step(len(m.Strands)-1, Reply{})
		}
	}
}

func (m *Machine) stepFreeze(i int, r Reply) {
	s := &m.Strands[i]
	home := Home{Ref: m.Record.Elect, Term: m.Record.Term, Yielded: true}
	switch {
	case s.Step == "" && m.Result.HolderAt != "":
		m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	case s.Step == "" && (s.Peer == home.Peer || s.X.Home == home):
		m.finish(i)
	case s.Step == "":
		o := s.X
		o.Home = home
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case s.Step == "pause":
		m.finish(i)
	case r.Class == Applied:
		s.X = r.Object
		m.finish(i)
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.unconfirmed(i)
	default:
		// It has changed, or the answer was lost: look at all again.
		m.Astray = true
		m.pause(i, "pause")
	}
}

// afterFreezing makes the heir home with the latest revision.
func (m *Machine) afterFreezing() {
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case m.Astray:
		m.succeed()
	case m.Result.HolderAt != "":
		m.because(HeldByOther, m.Result.HolderAt)
		m.end(Done)
	default:
		var heir, latest Object
		for _, s := range m.Strands {
			if s.Peer == m.Record.Elect.Peer {
				heir = s.X
			}
			if s.X.inForce() && cmp.Or(cmp.Compare(s.X.Revision.Number, latest.Revision.Number), cmp.Compare(len(s.X.History), len(latest.History))) > 0 {
				latest = s.X
			}
		}
		latest.Home = Home{Ref: m.Record.Elect, Term: m.Record.Term}
		if n := len(latest.History); n == 0 || latest.History[n-1].Number != latest.Revision.Number {
			latest.History = []Revision{{Number: latest.Revision.Number, Operation: latest.Revision.Operation}}
		}
		m.enter(crowning)
		m.Strands = append(m.Strands, Strand{Job: jobCrown, Peer: m.Record.Elect.Peer, X: heir, Y: latest})
		m.step(0, Reply{})
	}
}

func (m *Machine) stepCrown(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step == "" && !s.Y.Claimed:
		o := s.X
		o.Heartbeat++
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case s.Step == "":
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: s.X.successorOf(s.Y), UID: s.X.UID, RV: s.X.RV})
	case s.Step == "activate" && r.Class != Applied:
		m.unconfirmed(i)
	case s.Step == "pause", s.Step == "activate":
		m.finish(i)
	case r.Class == Applied && !s.Y.Claimed:
		s.X = r.Object
		m.send(i, "activate", Command{Verb: Activate, Peer: s.Peer, Object: r.Object})
	case r.Class == Applied:
		s.X = r.Object
		m.Result.Mended = true
		m.finish(i)
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.unconfirmed(i)
	default:
		m.Astray = true
		m.pause(i, "pause")
	}
}

func (m *Machine) afterCrowning() {
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case m.Astray:
		m.succeed()
	case !m.Strands[0].Y.Claimed && m.Strands[0].X.term() == 1:
		m.end(Done)
	default:
		// A home that moved, or replaced another, may not have reached every member yet: who
		// brings an earlier one along, which was lost with its peer, may be about to name it.
		m.heir(m.Strands[0].X, m.Record.Elect.Peer)
	}
}

// heir goes on with o in peer as home. Result.Revision is what it has: those
// above it are lost.
func (m *Machine) heir(o Object, peer string) {
	m.Primary = o
	m.Record.Primary = Ref{Peer: peer, UID: o.UID}
	m.Present = true
	m.Result.Revision = o.Revision.Number
	m.resume()
}
