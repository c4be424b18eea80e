// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// stepList lists the objects in the namespace in the strand's peer. If all are Reserved, it
// settles them first: their operations may be dead.
func (m *Machine) stepList(i int, r Reply) {
	s := &m.Strands[i]
	list := Command{Verb: List, Peer: s.Peer}
	switch s.Step {
	case "", "retry":
		m.send(i, "list", list)
	case "settle":
		// The reply lists the objects that are left: their operations are alive.
		alive := slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved })
		switch {
		case r.Code == OK && len(r.Occupants) == 0:
			m.finish(i)
		case r.Code == OK && (alive || s.Tries >= m.patience() || m.Expired):
			m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
			m.finish(i)
		default:
			m.pause(i, "relist")
		}
	case "relist":
		m.send(i, "list", list)
	case "list":
		switch {
		case r.Code == NotFound:
			m.finish(i)
		case r.Code != OK:
			if r.Code != NoSuchPeer && r.Code != Denied && m.again(i, "retry") {
				return
			}
			if m.Record.Committed || m.Op.Patience == Onward || m.Op.Action == Sweep {
				m.unconfirmed(i)
				return
			}
			m.fail(i, reasonOf(r))
		case len(r.Occupants) == 0:
			m.finish(i)
		case !slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved }):
			s.Tries++
			m.send(i, "settle", Command{Verb: Settle, Peer: s.Peer})
		default:
			m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
			m.finish(i)
		}
	}
}

func reasonOf(r Reply) Reason {
	if r.Code == Denied {
		return Refused
	}
	return Unreachable
}

// afterListing continues to the commit of the removal, unless an object is in the
// namespace.
func (m *Machine) afterListing() {
	switch {
	case m.Op.Action == Sweep:
		m.weigh()
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	case m.Stopping || m.Expired:
		m.because(Late, "")
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	default:
		m.Result.Pending = nil
		m.mark()
	}
}
