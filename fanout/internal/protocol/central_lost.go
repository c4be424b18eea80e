// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A record outlives the peer that has its primary. If a peer does not reply, the members'
// PeerSets show whether it has left the ring. In that case its objects are lost, and the
// secondaries that name them are dead, with or without the record.

const (
	inquiring   Phase = "inquiring" // which peers have left the ring
	jobDeparted job   = "departed"
)

// inquire reads the PeerSets of all peers.
func (m *Machine) inquire() {
	m.Stopping = false
	m.Result.Peers = nil
	m.enter(inquiring)
	for _, p := range m.Op.Peers {
		m.spawn(jobDeparted, p)
	}
}

// stepDeparted records the peers that have left the ring by the PeerSet of the strand's peer,
// if that is an Active member. A PeerSet with a change in progress does not count: until the
// change is over, an object in the leaving peer may get another home.
func (m *Machine) stepDeparted(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK:
		set := r.PeerSet
		quiet := set.Change.ID == "" || set.Change.Over
		for _, d := range set.Departed {
			// A peer that has left the ring need not be configured any longer.
			if quiet && set.Self.Peer == s.Peer && set.Self.State == peerActive && set.Gone(d.Peer) && !m.departed(d.Peer) {
				m.Departed = append(m.Departed, d.Peer)
			}
		}
		m.finish(i)
	default:
		m.finish(i)
	}
}

func (m *Machine) departed(peer string) bool { return slices.Contains(m.Departed, peer) }

// afterInquiring searches for the home of an Everywhere object whose target has left the ring
// or whose record is gone. It ends every other operation.
func (m *Machine) afterInquiring() {
	slices.Sort(m.Departed)
	if m.Result.Ending == InDoubt && m.departed(m.Op.Target) {
		m.Result.Ending = Ended
	}
	switch {
	case m.Op.Mode == Everywhere && (m.Result.Ending == Ended || m.departed(m.Op.Target)):
		m.Result.Pending = nil
		m.Record.Origin, m.Searched = m.Op.ID, true
		m.find()
	case m.departed(m.Op.Target):
		m.lost()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		m.Result.Keep = true
		m.end(Committed)
	}
}

// lost ends an operation whose object exists nowhere: as Done if its record was committed, as
// Ended otherwise.
func (m *Machine) lost() {
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
