// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// fail ends the strand (the running task). The other strands of the phase then make no new attempts
// (see Machine.Stopping). The result has the reason of the first failure.
func (s strand) fail(reason Reason) {
	m := s.m
	s.finish()
	m.because(reason, s.Peer)
	m.Stopping = true
}

func (m *Machine) because(reason Reason, peer string) {
	if m.Result.Reason == "" {
		m.Result.Reason, m.Result.Peer = reason, peer
	}
}

// heldBy ends the strand because o in peer has the name.
func (s strand) heldBy(reason Reason, peer string, o Object) {
	m := s.m
	if m.Result.Reason == "" {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	s.fail(reason)
}

// again retries a peer that did not reply, from step next after a pause. It returns false and does
// not retry if the operation is stopping or expired, or after some tries if it is not Patient.
func (s strand) again(next step) bool {
	m := s.m
	s.Tries++
	if m.Stopping || m.Expired || m.Op.Patience != Patient && s.Tries >= tries {
		return false
	}
	s.pause(next)
	return true
}

// retry is strand.again for work that a later sweep (a check and repair of all peers) or recovery can
// continue. If strand.again returns false, the strand ends and its peer stays unconfirmed.
func (s strand) retry(next step) {
	if !s.again(next) {
		s.unconfirmed()
	}
}

// reread handles a write that was not acknowledged. If the peer was unavailable, it reads the
// object again after a pause; after any other reply, for example because the object has changed, it
// reads at once. It returns false if the peer refused the write, is not configured, or was
// unavailable for the limit-th time.
func (s strand) reread(r Reply, limit int) bool {
	switch r.Code {
	case Denied, NoSuchPeer:
		return false
	case Unavailable:
		if s.Tries++; s.Tries >= limit {
			return false
		}
		s.pause(stepReread)
	default:
		s.send(stepRead, readObject(s.Peer))
	}
	return true
}
