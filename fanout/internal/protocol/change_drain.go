// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// drainage returns the sub-operation (the operation that the change runs on one object) for an
// object of a leaving peer, or false if the object needs none. It records the objects that prevent
// the leave, and the objects without a claim.
func (j leaveJob) drainage(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	switch {
	case !o.Claimed:
		c.Result.Left = append(c.Result.Left, f)
		return Operation{}, false
	case f.Mode == Everywhere && (o.Primary(f.Mode) && o.InEffect() || o.former(f.Mode) || o.yielded(f.Mode)):
		return j.evacuation()
	case !o.Primary(f.Mode):
		return Operation{}, false
	case o.Committed():
		c.Result.Blocking = append(c.Result.Blocking, f)
		return Operation{}, false
	default:
		c.Worked = true
		return Operation{Action: Sweep, Watch: true}, true
	}
}

// emptying returns the sub-operation for an object in a peer that all members have dropped, or
// false if the object needs none. A move that was in flight may have made the object a home again:
// a home is never deleted.
func (j leaveJob) emptying(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	primary := o.Primary(f.Mode)
	switch {
	case f.Mode == Everywhere && (primary && o.InEffect() || o.former(f.Mode) || o.yielded(f.Mode)):
		return j.evacuation()
	case f.Mode == Everywhere && primary && o.Leaving():
		c.Worked = true
		return Operation{Action: Sweep}, true
	case o.Claimed && !primary:
		return Operation{Action: Discard}, true
	}
	return Operation{}, false
}

// evacuation returns the move of a home to a remaining member. Each further round chooses the next
// member.
func (j leaveJob) evacuation() (Operation, bool) {
	c := j.c
	c.Worked = true
	ring := c.ring()
	return Operation{Action: Move, Into: []string{ring[c.Rounds%len(ring)]}}, true
}

// evacuates reports whether o moves a home out of peer.
func (o Operation) evacuates(peer string) bool {
	return o.Action == Move && !o.logged() && o.Met.Claim.Peer == peer
}

// outside reports whether this operation moves a home out of peer, and peer is no longer a member.
// Such a peer gets no replicas. Our finalizer is removed from its former home once all other peers
// name another home.
func (m *Machine) outside(peer string) bool {
	return m.Op.evacuates(peer) && m.HaveSet && !slices.Contains(m.Set.reached(), peer)
}
