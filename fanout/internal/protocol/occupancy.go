// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A listTask lists, in its peer, the objects in the namespace that the operation's object owns. If
// all are Reserved, it sends Settle first, which deletes those that are dead (their primary is gone
// for ever).
type listTask struct{ strand }

func (s listTask) step(r Reply) {
	list := Command{Verb: List, Peer: s.Peer}
	switch s.Step {
	case stepStart, stepRetry:
		s.send(stepList, list)
	case stepSettle:
		s.afterSettle(r)
	case stepRelist:
		s.send(stepList, list)
	case stepList:
		s.afterList(r)
	}
}

func (s listTask) afterSettle(r Reply) {
	m := s.m
	// The reply lists the objects that are left, a Reserved one with the stage of its primary. If the
	// stage is not Reserved, the object was committed, so it is no leftover of a dead operation.
	alive := slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved })
	switch {
	case r.Code == OK && len(r.Occupants) == 0:
		s.finish()
	case r.Code == OK && (alive || s.Tries >= commitJob{m}.askLimit() || m.Expired):
		m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
		s.finish()
	default:
		s.pause(stepRelist)
	}
}

func (s listTask) afterList(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound:
		s.finish()
	case r.Code != OK:
		if r.Code != NoSuchPeer && r.Code != Denied && s.again(stepRetry) {
			return
		}
		if m.Record.Committed || m.Op.Patience == Onward || m.Op.Action == Sweep {
			s.unconfirmed()
			return
		}
		s.fail(reasonOf(r))
	case len(r.Occupants) == 0:
		s.finish()
	case !slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved }):
		s.Tries++
		s.send(stepSettle, Command{Verb: Settle, Peer: s.Peer})
	default:
		m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
		s.finish()
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
func (j removeJob) afterListing() {
	m := j.m
	switch {
	case m.Op.Action == Sweep:
		holdJob{m}.weigh()
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
		j.mark()
	}
}
