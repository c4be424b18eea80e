// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A commit that was sent and not answered is judged by what stands in the primary's
// peer afterwards. If that peer was restored from a backup meanwhile, its state proves
// nothing about the time before: the commit may have been in effect, and was forgotten.

// lifetime is the distance between the epochs of a peer before and after it came back.
// Within one life they grow by one with each write of its PeerSet.
const lifetime = 1_000_000_000

// nextLife is the first epoch of the life after the one that epoch is of.
func nextLife(epoch int64) int64 { return (epoch/lifetime + 1) * lifetime }

// restoredSince says whether a peer whose PeerSet had the epoch then was restored
// before it had the epoch now.
func restoredSince(then, now int64) bool {
	return now < then || now/lifetime != then/lifetime
}

// attest reads the epoch of the primary's peer after what seems to prove that nothing
// was committed.
func (m *Machine) attest() {
	m.Stopping = false
	m.enter(attesting)
	m.spawn(jobAttest, m.Record.Primary.Peer)
}

func (m *Machine) stepAttest(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK && !restoredSince(m.Op.Epochs[s.Peer], r.PeerSet.Epoch):
		m.finish(i)
	case r.Code == OK:
		m.forgotten()
		m.finish(i)
	case r.Code == Unavailable && m.again(i, "retry"):
	default:
		// Nothing contradicts what was found, and nothing vouches for it.
		m.Result.Ending = Ended
		m.finish(i)
	}
}

// forgotten says that the primary's peer was restored since the commit may have been
// sent, so that nobody can tell whether it was in effect.
func (m *Machine) forgotten() {
	m.Result.Ending = Ended
	if m.Result.Reason != LogFailed {
		m.Result.Reason, m.Result.Peer = Restored, m.Record.Primary.Peer
	}
}
