// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A record in the central log outlives the peer that has its primary. If that peer does not reply,
// the members' PeerSets show whether it has left the ring. If it has left, its objects are lost.
// The secondaries that name them then hold no name (they are dead), with or without the record.

const (
	inquiring    Phase = "inquiring" // finding which peers have left the ring
	taskDeparted task  = "departed"
)

// inquire reads the PeerSets of all peers.
func (j centralJob) inquire() {
	m := j.m
	m.Stopping = false
	m.Result.Peers = nil
	m.enter(inquiring)
	for _, p := range m.Op.Peers {
		m.spawn(taskDeparted, p)
	}
}

// A departedTask records the peers that have left the ring according to the PeerSet of its own
// peer. It uses the PeerSet only if its peer is an Active member and no change of the membership is
// in progress there: until such a change is over, an object in the leaving peer may get another
// home.
type departedTask struct{ strand }

func (s departedTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK:
		set := r.PeerSet
		quiet := set.Change.ID == "" || set.Change.Over
		for _, d := range set.Departed {
			// Record d.Peer also if it is not configured: a peer that has left the ring need not be.
			if quiet && set.Self.Peer == s.Peer && set.Self.State == peerActive && set.Gone(d.Peer) && !m.departed(d.Peer) {
				m.Departed = append(m.Departed, d.Peer)
			}
		}
		s.finish()
	default:
		s.finish()
	}
}

func (m *Machine) departed(peer string) bool { return slices.Contains(m.Departed, peer) }

// afterInquiring searches for the home of an Everywhere object whose target has left the ring
// or whose record is gone. Otherwise it ends the operation.
func (j centralJob) afterInquiring() {
	m := j.m
	slices.Sort(m.Departed)
	if m.Result.Ending == InDoubt && m.departed(m.Op.Target) {
		m.Result.Ending = Ended
	}
	switch {
	case m.Op.Mode == Everywhere && (m.Result.Ending == Ended || m.departed(m.Op.Target)):
		m.Result.Pending = nil
		m.Record.Origin, m.Searched = m.Op.ID, true
		findJob{m}.begin()
	case m.departed(m.Op.Target):
		j.lost()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		m.Result.Keep = true
		m.end(Committed)
	}
}

// lost ends an operation whose object exists nowhere: as Done if its record was committed, as
// Ended otherwise.
func (j centralJob) lost() {
	m := j.m
	m.Result.Reason, m.Result.Peer, m.Result.Pending = "", "", nil
	if !m.Record.Committed {
		m.because(Late, "")
		m.end(Ended)
		return
	}
	if m.departed(m.Op.Target) {
		m.because(Lost, m.Op.Target)
	}
	m.end(Done)
}
