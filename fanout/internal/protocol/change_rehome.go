// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// rehoming returns the sub-operation for an object in a remaining member, or false if the object
// needs none. The home of an object may have been lost if the object names a home in a peer that is
// no member, or a replica that was elected to replace a lost home and may not be home yet.
func (j listJob) rehoming(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	lost := f.Mode == Everywhere && o.Claimed && o.Stage != Reserved &&
		(!slices.Contains(c.ring(), o.Of(Everywhere).Peer) || o.Home.frozen())
	if f.Mode == Everywhere && o.Claimed && !o.Primary(f.Mode) && o.Stage == Reserved && o.Of(f.Mode).Peer == c.Op.Peer {
		// The process that created this Reserved replica may be about to activate it, although its
		// home is in the lost peer. The sweep deletes the replica.
		return Operation{Action: Sweep}, true
	}
	// If the home is lost, Succeed elects another one. If o is a home in effect, Succeed writes it once
	// more, so that no move of o to the lost peer can commit.
	return Operation{Action: Succeed, Into: c.ring()}, lost || f.Mode == Everywhere && o.Primary(f.Mode) && o.InEffect()
}
