// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A member that was restored from an older state comes back under the slots of all,
// as one does that was given up; but the others never dropped it, so what names it is
// not dead. What it holds counts only as far as the others bear it out, and what they
// hold of it and it has forgotten is lost: it stays, and is reported.

// restored says that the change brings a member back that the others still list.
func (c *Change) restored() bool {
	return c.Op.Kind == Return && slices.Contains(c.Sets[c.Record.Anchor].peers(peerActive), c.Op.Peer)
}

// reborn says that a peer that was to come back has come back since the change began:
// one that was restored is a full member before, too, by what all hold.
func (c *Change) reborn(own PeerSet) bool {
	return c.Op.Kind != Return || c.Op.Anchor != "" || own.Epoch/lifetime > c.Record.Epoch/lifetime
}

// inventory notes what the peer that comes back holds.
func (c *Change) inventory(found []Found) {
	c.Kept = map[string]string{}
	for _, f := range found {
		if f.Object.Claimed {
			c.Kept[f.Key] = f.Object.UID
		}
	}
}

// forgotten says whether f, found in another member, names an object that the peer
// which comes back does not hold, or the heir of one, which may be gone by now.
func (c *Change) forgotten(f Found) bool {
	o := f.Object
	if !c.restored() || !o.Claimed || o.Primary(f.Mode) {
		return false
	}
	of := o.Of(f.Mode)
	return of.Peer == c.Op.Peer && c.Kept[f.Key] != of.UID || o.awaitsHeir(f.Mode)
}

// awaitsHeir says that o is in force and names an heir that perhaps is not home yet.
func (o Object) awaitsHeir(mode Mode) bool {
	return mode == Everywhere && o.Stage != Reserved && o.frozen()
}

// lose is what is done about f, whose primary is forgotten. A reservation is dead, and
// goes: who may be about to bring it into force read its primary before. An Account
// gets another home, among the others, with the latest revision that they have, unless
// another object has the name by now; of an object that exists once nothing is left but
// its guards.
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

// lost lists f: what it names was committed, and is in effect nowhere.
func (c *Change) lost(f Found) {
	if !slices.ContainsFunc(c.Result.Lost, func(l Found) bool { return l.Key == f.Key }) {
		c.Result.Lost = append(c.Result.Lost, f)
	}
}

// withhold leaves the peer in quarantine: a person decides first about what it holds.
func (c *Change) withhold() { c.over() }

// outgrown is set with an epoch above all that others have noted of it. A peer that
// comes back begins another life.
func (c *Change) outgrown(set PeerSet) PeerSet {
	set.Epoch = max(set.Epoch, noted(set.Self.Peer, set.Self.UID, c.Sets))
	if c.Op.Kind == Return {
		set.Epoch = nextLife(set.Epoch)
	}
	return set
}
