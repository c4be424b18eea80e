// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "reflect"

// carryChange applies message m, a command of a process that changes the membership.
func (w *world) carryChange(m message) Reply {
	p := w.procs[m.proc]
	ok := Reply{Class: Applied, Code: OK}
	switch m.cmd.Verb {
	case Begin, Advance:
		p.begun = true
		p.change.record = p.change.m.Record
		return ok
	case Forget:
		p.begun = false
		return ok
	case Sleep:
		return ok
	}
	i := w.store.index(m.cmd.Peer)
	if i < 0 {
		return refused(NoSuchPeer)
	}
	if w.isDown(i) || w.hidden(i, p) {
		return refused(Unavailable)
	}
	at := &w.store.cells[i]
	switch m.cmd.Verb {
	case Survey:
		if at.obj != nil {
			ok.Found = []Found{{Key: "n", Mode: w.cfg.mode, Object: *at.obj}}
		}
		return ok
	case ReadPeerSet:
		if at.set == nil {
			return refused(NotFound)
		}
		ok.PeerSet = *at.set
		return ok
	default:
		if !p.begun && !m.orphan {
			w.fault("I8: a membership is written before the log has the change")
		}
		r, broken := w.store.putSet(at, m.cmd)
		if broken != "" {
			w.fault(broken)
		}
		return r
	}
}

// putSet replaces a PeerSet as an API server would.
func (s *store) putSet(at *cell, c Command) (Reply, string) {
	set := *c.Set
	switch {
	case at.set == nil && c.RV != "":
		return refused(NotFound), ""
	case at.set != nil && c.RV == "":
		return refused(Exists), ""
	case at.set != nil && c.RV != at.set.RV:
		return refused(Conflict), ""
	}
	broken := ""
	if old := at.set; old != nil {
		if set.Self.Peer != old.Self.Peer || set.Self.UID != old.Self.UID {
			broken = "rule: self cannot become another peer"
		}
		if old.Ring != "" && set.Ring != old.Ring {
			broken = "rule: the ring never changes"
		}
		if set.Epoch != old.Epoch+1 && set.Epoch != nextLife(old.Epoch)+1 && !reflect.DeepEqual(set, *old) {
			broken = "rule: the epoch grows"
		}
		if old.Change.ID == "" && set.Change.ID == "" {
			broken = "rule: a write of a PeerSet needs the slot"
		}
	}
	set.UID = "s" + c.Peer
	set.RV = s.rv()
	at.set = &set
	return Reply{Class: Applied, Code: OK, PeerSet: set}, broken
}
