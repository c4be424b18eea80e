// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"
)

// generation is the number of terms in a generation. A home that replaces an absent home gets the
// first term of a later generation. A move adds one or two to a term. The absent home may have
// moved more often than the change that replaces it can know, and the terms of the two homes must
// differ.
const generation = 1 << 20

// generationOf returns the generation of a term. Each replacement of a lost home begins another
// generation.
func generationOf(term int64) int64 { return term / generation }

func nextGeneration(term int64) int64 { return (generationOf(term) + 1) * generation }

// A succeedJob gives an object whose home was lost another home.
type succeedJob struct{ m *Machine }

// begin gives an object whose home was lost with its peer another home, among the members Into.
// First it makes every replica name the elected replica, so that no late write from the old home
// can reach a replica. Then the elected replica becomes home, with the latest revision of all
// replicas. Any process may repeat the succession at any time: a run that cannot continue an
// earlier one uses a later generation, which wins.
//
// A removal by force also runs this job for homes in effect in the remaining members. If Op.Met, the
// object as it was listed, is such a home, begin elects nothing: it writes the home once more with a
// raised heartbeat, so that no move of the home to the lost peer can commit.
func (j succeedJob) begin() {
	m := j.m
	if m.Turns++; m.Turns > takeovers {
		m.because(Contended, m.Op.Target)
		m.pend(m.Op.Target)
		m.end(Done)
		return
	}
	m.Astray = false
	m.Result.Holder, m.Result.HolderAt = Object{}, ""
	if met := m.Op.Met; m.Turns == 1 && met.Primary(Everywhere) && met.InEffect() {
		j.affirm(met, m.Op.Target)
		return
	}
	m.enter(surveying)
	for _, p := range m.Op.Into {
		m.spawn(taskSurvey, p)
	}
}

// affirm writes home o in peer once more, with a raised heartbeat. This voids each move that read
// the home before this write. A move reads the home before it reads the members. So a move that
// read the members before a peer was removed by force cannot commit after this write.
func (j succeedJob) affirm(o Object, peer string) {
	m := j.m
	m.Record.Elect = Ref{Peer: peer, UID: o.UID}
	m.enter(crowning)
	m.start(Strand{Task: taskCrown, Peer: peer, X: o})
}

// A surveyTask reads the object in its peer.
type surveyTask struct{ strand }

func (s surveyTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step == stepVoid:
		s.voided(r)
	case s.Step == stepHome && r.Code == OK:
		s.Y = r.Object
		s.finish()
	case s.Step == stepSet:
		s.afterSet(r)
	case s.Step != stepRead && s.Step != stepHome:
		s.send(stepRead, readObject(s.Peer))
	case r.Code == OK && resignJob{m}.awaits(r.Object):
		s.void(r.Object)
	case r.Code == OK && r.Object.Claim.Operation == m.Op.Met.Claim.Operation:
		s.found(r.Object)
	case r.Code == OK, r.Code == NotFound:
		// The peer has no object of the name, or an object of another operation.
		if o := r.Object; m.Op.Doubted != "" && o.Primary(Everywhere) && o.InEffect() {
			m.Result.Holder, m.Result.HolderAt = o, s.Peer
		}
		s.finish()
	case r.Code == Denied, r.Code == NoSuchPeer, !s.again(stepRetry):
		s.unconfirmed()
	}
}

// found ends the strand (the running task) with o. This process may be late: the peer of o's home may be a member
// again, and o the replica of an object that was added there since. So the strand first reads this home if it is in
// the rejoining peer Op.Doubted, and otherwise, if the home's peer is no member, the PeerSet of its own peer.
func (s surveyTask) found(o Object) {
	m := s.m
	s.X = o
	switch home := o.Of(Everywhere).Peer; {
	case m.Op.Doubted != "" && home == m.Op.Doubted:
		s.send(stepHome, readObject(home))
	case m.Op.Action == Succeed && !slices.Contains(m.Op.Into, home):
		s.send(stepSet, Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		s.finish()
	}
}

// afterSet ends the strand. It notes whether the peer of X's home is a member again.
func (s surveyTask) afterSet(r Reply) {
	m := s.m
	switch home := s.X.Of(Everywhere).Peer; {
	case r.Code != OK:
		if !s.again(stepRetry) {
			s.unconfirmed()
		}
		return
	case r.PeerSet.Lists(home):
		m.because(Membership, home)
	}
	s.finish()
}

// frozen reports whether h is the Home of a frozen replica. The home of such a replica was lost, and
// h names an elected replica that may not be home yet. Only a succession may make the elected
// replica home, or elect another one.
func (h Home) frozen() bool { return h.Yielded && h.Term%generation == 0 }

// active reports whether o is Active in its peer, as home or as a replica.
func (o Object) active() bool { return o.Claimed && o.Stage == Active }

// A survey summarizes the objects that the members have in place of an object whose home is
// unknown.
type survey struct {
	held   map[string]Object // the object in each peer
	top    Object            // the object of the highest term
	at     string            // the peer of top
	home   Object            // the object that top names, if it was read
	exists bool              // a member has the object, and not only a reservation
}

func surveyOf(strands []Strand) survey {
	v := survey{held: map[string]Object{}}
	for _, s := range strands {
		v.held[s.Peer] = s.X
		v.exists = v.exists || s.X.Claimed && s.X.Stage != Reserved
		higher := s.X.term() > v.top.term() || s.X.term() == v.top.term() && v.top.Stage == Reserved
		if s.X.Claimed && (!v.top.Claimed || higher) {
			v.top, v.at, v.home = s.X, s.Peer, s.Y
		}
	}
	return v
}

func (j succeedJob) afterSurveying() {
	m := j.m
	v := surveyOf(m.Strands)
	switch {
	case len(m.Result.Pending) > 0:
		// A member that does not answer may have the latest revision.
		m.end(Done)
	case m.Result.Reason == Membership:
		m.end(Done) // the home needs no successor: its peer has become a member again
	case !v.exists:
		// No member has the object committed, and the home that alone could commit the
		// reservations in the members is lost: there is nothing to elect.
		m.because(Missing, m.Op.Target)
		m.end(Done)
	case v.home.Claimed && v.home.UID == v.top.Of(Everywhere).UID:
		m.end(Done) // the restored peer still has the home
	case m.Result.HolderAt != "":
		// The object was removed and the name taken again. A restore brought the object back, and
		// replicas of it reached members before the restore was noticed: delete those replicas.
		j.freeze(Ref{}, 0)
	default:
		j.elect(v)
	}
}

// elect continues with the elected replica that the members name, or chooses one.
func (j succeedJob) elect(v survey) {
	m := j.m
	of, term := v.top.Of(Everywhere), v.top.term()
	heir, lives := v.held[of.Peer]
	lives = lives && heir.UID == of.UID
	crowned := lives && heir.Primary(Everywhere) && heir.term() >= term
	switch {
	case crowned && heir.InEffect() && m.Op.Met.Primary(Everywhere):
		j.affirm(heir, of.Peer)
	case crowned:
		j.heir(heir, of.Peer)
	case v.top.yielded(Everywhere) && !v.top.Home.frozen() && slices.Contains(m.Op.Into, of.Peer):
		// The home moves among the remaining members.
		m.astray(v.top, v.at)
		findJob{m}.regain()
	case lives && !heir.Terminating && v.top.Home.frozen() && heir.term() < term:
		j.freeze(of, term)
	case !slices.Contains(m.Op.Into, of.Peer), v.top.Home.frozen(), !lives && v.top.Stage == Reserved:
		j.choose(v.held, nextGeneration(term))
	default:
		// The home was made, or has moved, between the reads: read again.
		j.begin()
	}
}

// choose elects the replica of the first member that has the object Active. If all such
// replicas are being deleted, it elects the first one that was home: our finalizer holds it
// already, and its removal continues.
func (j succeedJob) choose(held map[string]Object, term int64) {
	m := j.m
	for _, going := range []bool{false, true} {
		for _, p := range slices.Sorted(slices.Values(m.Op.Into)) {
			if o := held[p]; o.active() && o.Terminating == going && (!going || o.Finalizer) {
				j.freeze(Ref{Peer: p, UID: o.UID}, term)
				return
			}
		}
	}
	m.because(Missing, m.Op.Target)
	m.end(Done)
}

// freeze makes every other replica name the elected replica. If another object has the name, no
// replica is elected, and freeze deletes the replicas.
func (j succeedJob) freeze(heir Ref, term int64) {
	m := j.m
	survey := m.Strands
	m.enter(freezing)
	m.Record.Elect, m.Record.Term = heir, term
	for _, s := range survey {
		if s.X.Claimed && (s.X.Stage != Reserved || !s.X.Primary(Everywhere)) {
			m.start(Strand{Task: taskFreeze, Peer: s.Peer, X: s.X})
		}
	}
}

// A freezeTask makes the replica in one member name the elected replica, or deletes the replica if
// another object has the name.
type freezeTask struct{ strand }

func (s freezeTask) step(r Reply) {
	m := s.m
	home := Home{Ref: m.Record.Elect, Term: m.Record.Term, Yielded: true}
	switch {
	case s.Step == stepStart && m.Result.HolderAt != "":
		s.send(stepDelete, deleteObject(s.Peer, s.X))
	case s.Step == stepStart && (s.Peer == home.Peer || s.X.Home == home):
		s.finish()
	case s.Step == stepStart:
		o := s.X
		o.Home = home
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case s.Step == stepPause:
		s.finish()
	case r.Class == Applied:
		s.X = r.Object
		s.finish()
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	default:
		// The replica has changed, or the reply was lost: read all members again.
		m.Astray = true
		s.pause(stepPause)
	}
}

// afterFreezing makes the elected replica home with the latest revision.
func (j succeedJob) afterFreezing() {
	m := j.m
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case m.Astray:
		j.begin()
	case m.Result.HolderAt != "":
		m.because(HeldByOther, m.Result.HolderAt)
		m.end(Done)
	default:
		var heir, latest Object
		for _, s := range m.Strands {
			if s.Peer == m.Record.Elect.Peer {
				heir = s.X
			}
			if s.X.active() && cmp.Or(cmp.Compare(s.X.Revision.Number, latest.Revision.Number), cmp.Compare(len(s.X.History), len(latest.History))) > 0 {
				latest = s.X
			}
		}
		latest.Home = Home{Ref: m.Record.Elect, Term: m.Record.Term}
		if n := len(latest.History); n == 0 || latest.History[n-1].Number != latest.Revision.Number {
			latest.History = []Revision{{Number: latest.Revision.Number, Operation: latest.Revision.Operation}}
		}
		m.enter(crowning)
		m.start(Strand{Task: taskCrown, Peer: m.Record.Elect.Peer, X: heir, Y: latest})
	}
}

// A crownTask makes the elected replica X the home, with the state of Y. Without Y it writes the
// home X once more, with a raised heartbeat.
type crownTask struct{ strand }

func (s crownTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step == stepStart && !s.Y.Claimed:
		o := s.X
		o.Heartbeat++
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case s.Step == stepStart:
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: s.X.successorOf(s.Y), UID: s.X.UID, RV: s.X.RV})
	case s.Step == stepActivate && r.Class != Applied:
		s.unconfirmed()
	case s.Step == stepPause, s.Step == stepActivate:
		s.finish()
	case r.Class == Applied && !s.Y.Claimed:
		s.X = r.Object
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: r.Object})
	case r.Class == Applied:
		s.X = r.Object
		m.Result.Mended = true
		s.finish()
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	default:
		m.Astray = true
		s.pause(stepPause)
	}
}

func (j succeedJob) afterCrowning() {
	m := j.m
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case m.Astray:
		j.begin()
	case !m.Strands[0].Y.Claimed && m.Strands[0].X.term() == 1:
		m.end(Done)
	default:
		// A home that moved, or replaced another, may not have reached every member yet: a
		// late write of an earlier move could still make a replica name a lost home.
		j.heir(m.Strands[0].X, m.Record.Elect.Peer)
	}
}

// heir continues with o in peer as home. Result.Revision is o's revision: later revisions are
// lost.
func (j succeedJob) heir(o Object, peer string) {
	m := j.m
	m.Primary = o
	m.Record.Primary = Ref{Peer: peer, UID: o.UID}
	m.Present = true
	m.Result.Revision = o.Revision.Number
	findJob{m}.resume()
}
