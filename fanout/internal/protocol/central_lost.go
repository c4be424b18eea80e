// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A record does not go with the peer for which it was decided. Whoever settles
// the operation asks the members for peers that do not answer: one that has
// departed took what it held along, and what names it is dead, with the record or
// without it.

const (
	inquiring   Phase = "inquiring" // who has departed
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

// stepDeparted notes who is no member any more by the PeerSet of the strand's
// peer, if that is one itself. Until the change is over what was home in the peer
// that goes may be given another one.
func (m *Machine) stepDeparted(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK:
		set := r.PeerSet
		quiet := set.Change.ID == "" || set.Change.Over
		for _, d := range set.Departed {
			// Configured or not: who has departed need not be any more.
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

// afterInquiring ends an operation whose target has departed, unless its object has
// another home by now, and goes on with one that was only looked for.
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

// lost ends an operation that was committed if its record was, and whose object
// is nowhere.
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
