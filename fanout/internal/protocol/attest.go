// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A commit that was sent but not acknowledged is judged by the state of the primary's peer
// afterwards. If that peer was restored from a backup meanwhile, its state proves nothing: the
// commit may have been in effect and then lost.

// lifetime is the number of epochs in one life of a peer (the time between two rejoins). The epoch
// is a counter in the peer's PeerSet: each write of the PeerSet raises it by one, and a rejoin
// raises it to the next multiple of lifetime.
const lifetime = 1_000_000_000

// nextLife returns the first epoch after the next rejoin of a peer whose PeerSet has this epoch
// now.
func nextLife(epoch int64) int64 { return (epoch/lifetime + 1) * lifetime }

// restoredSince reports whether the epochs of two reads of a peer's PeerSet show that the peer was
// restored, or has rejoined, between these reads. then is the epoch of the first read, now that of
// the second.
func restoredSince(then, now int64) bool {
	return now < then || now/lifetime != then/lifetime
}

// An endJob ends the operation and its entry in the log.
type endJob struct{ m *Machine }

// attest reads the epoch of the primary's peer after a read that seems to prove that nothing
// was committed.
func (j endJob) attest() {
	m := j.m
	m.Stopping = false
	m.enter(attesting)
	m.spawn(taskAttest, m.Record.Primary.Peer)
}

// An attestTask reads the epoch of the primary's peer.
type attestTask struct{ strand }

func (s attestTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK && !restoredSince(m.Op.Epochs[s.Peer], r.PeerSet.Epoch):
		s.finish()
	case r.Code == OK:
		endJob{m}.forgotten()
		s.finish()
	case r.Code == Unavailable && s.again(stepRetry):
	default:
		// Without the epoch, a restore is neither proved nor excluded.
		m.Result.Ending = Ended
		s.finish()
	}
}

// forgotten sets the ending Ended: the primary's peer was restored since the operation began, so it
// is unknown whether the commit was in effect before the restore.
func (j endJob) forgotten() {
	m := j.m
	m.Result.Ending = Ended
	if m.Result.Reason != LogFailed {
		m.Result.Reason, m.Result.Peer = Restored, m.Record.Primary.Peer
	}
}
