// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// fail ends strand i and makes the other strands of the phase stop at their next reply. The
// first failure is reported.
func (m *Machine) fail(i int, reason Reason) {
	m.finish(i)
	m.because(reason, m.Strands[i].Peer)
	m.Stopping = true
}

func (m *Machine) because(reason Reason, peer string) {
	if m.Result.Reason == "" {
		m.Result.Reason, m.Result.Peer = reason, peer
	}
}

// heldBy ends strand i because o in peer has the name.
func (m *Machine) heldBy(i int, reason Reason, peer string, o Object) {
	if m.Result.Reason == "" {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	m.fail(i, reason)
}

// again retries a peer that did not reply, from step next after a pause. It returns false when
// it gives up.
func (m *Machine) again(i int, next step) bool {
	s := &m.Strands[i]
	s.Tries++
	if m.Stopping || m.Expired || m.Op.Patience != Patient && s.Tries >= tries {
		return false
	}
	m.pause(i, next)
	return true
}

// reread handles a write that was not acknowledged. It reads an object that has changed again
// at once, and asks a peer that did not accept the write after a pause, at most limit times. It
// returns false when it gives up.
func (m *Machine) reread(i int, r Reply, limit int) bool {
	s := &m.Strands[i]
	switch r.Code {
	case Denied, NoSuchPeer:
		return false
	case Unavailable:
		if s.Tries++; s.Tries >= limit {
			return false
		}
		m.pause(i, "reread")
	default:
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	}
	return true
}
