// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A member that was restored from an older state rejoins under the slots of all members, like a
// peer that was removed by force. But the others never dropped it, so secondaries that name it
// are not dead. Its objects count only as far as the other members confirm them. An object that
// it no longer has is lost: the guards in the other members stay and are reported.

// restored reports whether the change readmits a member that the others still list.
func (c *Change) restored() bool {
	return c.Op.Kind == Return && slices.Contains(c.Sets[c.Record.Anchor].peers(peerActive), c.Op.Peer)
}

// reborn reports whether a peer has rejoined since the change began. A restored peer is already
// a full member by all lists, so its epoch decides.
func (c *Change) reborn(own PeerSet) bool {
	return c.Op.Kind != Return || c.Op.Anchor != "" || own.Epoch/lifetime > c.Record.Epoch/lifetime
}

// inventory records the UIDs of the claimed objects in the rejoining peer.
func (c *Change) inventory(found []Found) {
	c.Kept = map[string]string{}
	for _, f := range found {
		if f.Object.Claimed {
			c.Kept[f.Key] = f.Object.UID
		}
	}
}

// forgotten reports whether f, found in another member, names an object that the rejoining peer
// does not have, or an heir, which may be gone by now.
func (c *Change) forgotten(f Found) bool {
	o := f.Object
	if !c.restored() || !o.Claimed || o.Primary(f.Mode) {
		return false
	}
	of := o.Of(f.Mode)
	return of.Peer == c.Op.Peer && c.Kept[f.Key] != of.UID || o.awaitsHeir(f.Mode)
}

// awaitsHeir reports whether o is in force and names an heir that may not be home yet.
func (o Object) awaitsHeir(mode Mode) bool {
	return mode == Everywhere && o.Stage != Reserved && o.frozen()
}

// lose returns the sub-operation for f, whose primary the restored peer no longer has. An
// Account gets a home among the other members with their latest revision, unless another object
// has the name by now. A reservation is dead and is swept; a process that may still bring it
// into force read the primary before the restore. Of an object that exists once only guards are
// left, so f is reported as lost.
func (c *Change) lose(f Found) (Operation, bool) {
	switch {
	case f.Object.awaitsHeir(f.Mode), f.Mode == Everywhere && f.Object.Evidence(f.Mode):
		return Operation{Action: Succeed, Into: c.ring()}, true
	case !f.Object.Evidence(f.Mode):
		return Operation{Action: Sweep}, true
	}
	c.lost(f)
	return Operation{}, false
}

// lost reports f, whose primary was committed and is in effect nowhere.
func (c *Change) lost(f Found) {
	if !slices.ContainsFunc(c.Result.Lost, func(l Found) bool { return l.Key == f.Key }) {
		c.Result.Lost = append(c.Result.Lost, f)
	}
}

// withhold leaves the peer Quarantined until a person has decided about its objects.
func (c *Change) withhold() { c.over() }

// outgrown returns set with an epoch that is not below any epoch that the other peers noted.
// For a rejoining peer it is the first epoch of its next life.
func (c *Change) outgrown(set PeerSet) PeerSet {
	set.Epoch = max(set.Epoch, noted(set.Self.Peer, set.Self.UID, c.Sets))
	if c.Op.Kind == Return {
		set.Epoch = nextLife(set.Epoch)
	}
	return set
}
