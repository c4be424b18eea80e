// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// drainage is what is done about an object of a peer that wants to leave. It
// notes what keeps the peer.
func (c *Change) drainage(f Found) (Operation, bool) {
	o := f.Object
	switch {
	case !o.Claimed:
		c.Result.Left = append(c.Result.Left, f)
		return Operation{}, false
	case f.Mode == Everywhere && (o.Primary(f.Mode) && o.InEffect() || o.former(f.Mode) || o.yielded(f.Mode)):
		return c.evacuation()
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

// emptying is what is done about an object in a peer that all have dropped. A
// move that was on its way may have made it a home again: that is never deleted.
func (c *Change) emptying(f Found) (Operation, bool) {
	o := f.Object
	primary := o.Primary(f.Mode)
	switch {
	case f.Mode == Everywhere && (primary && o.InEffect() || o.former(f.Mode) || o.yielded(f.Mode)):
		return c.evacuation()
	case f.Mode == Everywhere && primary && o.Leaving():
		c.Worked = true
		return Operation{Action: Sweep}, true
	case o.Claimed && !primary:
		return Operation{Action: Discard}, true
	}
	return Operation{}, false
}

// evacuation moves a home to one of those who stay, another one whenever that
// did not work.
func (c *Change) evacuation() (Operation, bool) {
	c.Worked = true
	ring := c.ring()
	return Operation{Action: Move, Into: []string{ring[c.Rounds%len(ring)]}}, true
}

// evacuates says whether what is in peer is to be home no more, wherever else its
// home is.
func (o Operation) evacuates(peer string) bool {
	return o.Action == Move && !o.logged() && o.Met.Claim.Peer == peer
}

// outside says that peer, which is evacuated, is no member any more: it gets
// nothing, and what was home there is let go once all others name another one.
func (m *Machine) outside(peer string) bool {
	return m.Op.evacuates(peer) && m.HaveSet && !slices.Contains(m.Set.reached(), peer)
}
