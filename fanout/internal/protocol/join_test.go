// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// join is the last peer becoming a member: every other peer's PeerSet is told
// first, then its primaries are listed and guarded in the newcomer. Each step
// is atomic; anything may happen between two of them.
type join struct {
	at     int     // the peer whose turn it is
	told   bool    // its PeerSet has the newcomer
	listed bool    // its primaries are listed
	found  *Object // the one that was listed
	done   bool
}

func (w *world) newcomer() int { return len(w.store.cells) - 1 }

// joining makes the last peer a newcomer.
func (w *world) joining() {
	n := w.newcomer()
	members := slices.Clone(w.store.cells[n].set.Members)
	members[n].State = "Joining"
	for i := range w.store.cells {
		set := *w.store.cells[i].set
		set.Members = members
		if i < n {
			set.Members = members[:n]
		} else {
			set.Self = members[n]
		}
		w.store.cells[i].set = &set
	}
}

// joinNext takes the next step and says whether there was one.
func (w *world) joinNext() bool {
	j, n := &w.join, w.newcomer()
	switch {
	case j.done:
		return false
	case j.at == n:
		if !w.brought() {
			return false
		}
		j.done = true
		set := *w.store.cells[n].set
		set.Members = slices.Clone(set.Members)
		set.Self.State, set.Members[n].State = "Active", "Active"
		w.store.cells[n].set = &set
	case !j.told:
		j.told = true
		set := *w.store.cells[j.at].set
		set.Members = w.store.cells[n].set.Members
		w.store.cells[j.at].set = &set
	case !j.listed:
		j.listed = true
		j.found = nil
		if o := w.store.cells[j.at].obj; o != nil && o.Primary(w.cfg.mode) {
			j.found = o
		}
	default:
		if j.found != nil && !w.guardNewcomer() {
			j.listed = false
			return true
		}
		*j = join{at: j.at + 1}
	}
	return true
}

// guardNewcomer creates the listed primary's secondary in the newcomer. It
// returns false if something else is there.
func (w *world) guardNewcomer() bool {
	j, at := &w.join, &w.store.cells[w.newcomer()]
	of := Ref{peerName(j.at), j.found.UID}
	if x := at.obj; x != nil && x.Of(w.cfg.mode) != of {
		y, _ := w.store.apply(w.cfg.mode, Command{Verb: Read, Peer: x.Of(w.cfg.mode).Peer})
		if judge(w.cfg.mode, *x, y) != dead {
			return false
		}
		at.obj = nil
	}
	if at.obj == nil {
		m := Machine{Op: Operation{Mode: w.cfg.mode}, Primary: *j.found, Record: Record{Primary: of}}
		_, broken := w.store.create(at, Command{Verb: Create, Peer: peerName(w.newcomer()), Object: m.secondaryOf(peerName(w.newcomer()))})
		if broken != "" {
			w.fault(broken)
		}
	}
	return true
}

// brought says whether the newcomer has every committed object that is to be
// everywhere.
func (w *world) brought() bool {
	if w.cfg.mode == Once {
		return true
	}
	x := w.store.cells[w.newcomer()].obj
	for _, c := range w.store.cells[:w.newcomer()] {
		if c.obj != nil && c.obj.Primary(Everywhere) && c.obj.Committed() {
			return x != nil && x.Stage == Active
		}
	}
	return true
}

// outsider says whether peer i need not hold anything yet.
func (w *world) outsider(i int) bool {
	return w.cfg.join && i == w.newcomer() && !w.join.done
}

// everywhere says whether every active member has at least revision n, unless
// the object is being removed.
func (w *world) everywhere(n int64) bool {
	if !slices.ContainsFunc(w.store.cells, func(c cell) bool { return c.obj != nil && c.obj.Primary(w.cfg.mode) && c.obj.Committed() }) {
		return true
	}
	for i, c := range w.store.cells {
		if x := c.obj; !w.outsider(i) && x != nil && x.Claimed && x.Stage == Active && x.Revision.Number < n {
			return false
		}
	}
	return true
}
