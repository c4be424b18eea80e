// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A member that was restored from an older state rejoins while the change holds the slots of all
// members. The other members still list it, so secondaries of its primaries stay valid. The
// restored member's objects prove nothing by themselves: the other members must confirm them. If
// the restored member lost an object, the object's guards stay, and are reported.

// restored reports whether the change readmits a member that the other members still list.
func (c *Change) restored() bool {
	return c.Op.Kind == Return && slices.Contains(c.Sets[c.Record.Anchor].peers(peerActive), c.Op.Peer)
}

// A restoreJob makes a restored member a member again.
type restoreJob struct{ c *Change }

// reborn reports whether the epoch of own, the newcomer's PeerSet, shows that the newcomer has
// rejoined since the change began. The lists of members do not show this: a restored peer is a full
// member in all of them before it rejoins. For a change that is no rejoin, or that was found in a
// slot, reborn returns true.
func (j restoreJob) reborn(own PeerSet) bool {
	c := j.c
	return c.Op.Kind != Return || c.Op.Anchor != "" || own.Epoch/lifetime > c.Record.Epoch/lifetime
}

// inventory records the UIDs of the claimed objects in the rejoining peer.
func (j restoreJob) inventory(found []Found) {
	c := j.c
	c.Kept = map[string]string{}
	for _, f := range found {
		if f.Object.Claimed {
			c.Kept[f.Key] = f.Object.UID
		}
	}
}

// forgotten reports whether f is a secondary in another member whose primary the restored peer no
// longer has, or a secondary that names an elected replica, which may be gone by now.
func (j restoreJob) forgotten(f Found) bool {
	c := j.c
	o := f.Object
	if !c.restored() || !o.Claimed || o.Primary(f.Mode) {
		return false
	}
	of := o.Of(f.Mode)
	return of.Peer == c.Op.Peer && c.Kept[f.Key] != of.UID || o.awaitsHeir(f.Mode)
}

// awaitsHeir reports whether o is in effect and names an elected replica that may not be home yet.
func (o Object) awaitsHeir(mode Mode) bool {
	return mode == Everywhere && o.Stage != Reserved && o.Home.frozen()
}

// lose returns the sub-operation for f, whose primary the restored peer no longer has. An object
// that exists everywhere gets a home among the other members, with their latest revision, unless
// another object has the name by now. A reservation is dead, but a process that read its primary
// before the restore may still activate it, so a sweep deletes it. Of an object that exists once
// only guards are left, so f is reported as lost.
func (j restoreJob) lose(f Found) (Operation, bool) {
	c := j.c
	switch {
	case f.Object.awaitsHeir(f.Mode), f.Mode == Everywhere && f.Object.Evidence(f.Mode):
		return Operation{Action: Succeed, Into: c.ring()}, true
	case !f.Object.Evidence(f.Mode):
		return Operation{Action: Sweep}, true
	}
	j.reportLost(f)
	return Operation{}, false
}

// reportLost adds f to the result: the primary of f was committed and is in effect nowhere.
func (j restoreJob) reportLost(f Found) {
	c := j.c
	if !slices.ContainsFunc(c.Result.Lost, func(l Found) bool { return l.Key == f.Key }) {
		c.Result.Lost = append(c.Result.Lost, f)
	}
}

// withhold ends the change and leaves the peer Quarantined. A person must decide about the objects
// in Result.Blocking before the peer can rejoin.
func (j restoreJob) withhold() {
	c := j.c
	closeJob{c}.begin()
}

// outgrown returns set with an epoch that is not below any epoch that the other peers noted. For a
// rejoining peer it is the first epoch of its next life (the time until its next rejoin).
func (j restoreJob) outgrown(set PeerSet) PeerSet {
	c := j.c
	set.Epoch = max(set.Epoch, noted(set.Self.Peer, set.Self.UID, c.Sets))
	if c.Op.Kind == Return {
		set.Epoch = nextLife(set.Epoch)
	}
	return set
}
