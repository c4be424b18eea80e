// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strconv"
)

type kind uint8

const (
	actBegin kind = iota
	actDeliver
	actTimeout
	actUnsent
	actDeny
	actCrash
	actRecover
	actDouble
	actExpire
	actRetry
	actSweep
	actBump
	actDelete
	actHold
	actUnhold
	actApply
	actLook
	actMove
	actHelp
	actCreate
	actEdit
	actWithdraw
	actAdopt
	actLose
	actRestart
	actBackup
	actRestore
	actAstray
	actCorrect
	actNotice
	actRelease
	actTake
)

// action is one step of the model, such as the delivery of a message or the crash of a process. a is
// the number of a process, a message or a peer, depending on the kind. Some kinds need a second
// number: b is the number of a peer, a process or a record.
type action struct {
	kind kind
	a, b uint8
}

func (c Command) remote() bool {
	return c.onRecord() && c.Verb != Forget || c.Verb == Read || c.Verb == Create || c.Verb == Put || c.Verb == Delete
}

// rivalPending reports whether the rival of p may yet be committed. The rival is another operation's
// reservation of the name (an object in stage Reserved), which p's result has as Holder.
func (w *world) rivalPending(p *proc) bool {
	at := w.store.index(p.result.HolderAt)
	if at < 0 {
		return false
	}
	o := w.store.cells[at].obj
	return o != nil && o.UID == p.result.Holder.UID && o.Stage == Reserved && (o.Claim.Record == "" || o.Undecided())
}

// do applies an action to w in place. A caller that needs the old state has cloned it.
func (w *world) do(a action) {
	if a.kind&inside != 0 {
		w.lodger.do(action{a.kind &^ inside, a.a, a.b})
		return
	}
	i := int(a.a)
	switch a.kind {
	case actBegin, actRecover:
		if w.procs[i].change != nil {
			w.beginChange(i)
			break
		}
		if a.kind == actRecover {
			w.recover(i)
			break
		}
		p := w.own(i)
		p.op.Peers = w.configured(p.op.Peers, w.cfg.peersOf(i), p.op.Target)
		p.op.Epochs = w.epochs()
		p.state, p.m = running, New(p.op)
		w.run(i, w.started(p))
	case actDeliver:
		if w.net[i].cmd.Verb == Sleep && !w.split {
			w.beats--
		}
		w.deliver(i)
	case actApply:
		m := &w.net[i]
		w.own(m.proc)
		m.reply, m.applied = new(w.carry(*m)), true
	case actTimeout:
		w.timeouts--
		m := w.net[i]
		if m.applied || m.cmd.Verb == Read || m.cmd.Verb == ReadPeerSet || m.cmd.Verb == Survey || m.cmd.Verb == ReadRecord {
			w.net = slices.Delete(w.net, i, i+1)
		} else {
			w.net[i].orphan = true
		}
		w.tellProc(m, Reply{Class: Unknown, Code: Unavailable})
	case actUnsent:
		w.unsent--
		m := w.net[i]
		w.net = slices.Delete(w.net, i, i+1)
		w.tellProc(m, refused(Unavailable))
	case actDeny:
		w.denials--
		m := w.net[i]
		w.net = slices.Delete(w.net, i, i+1)
		w.tellProc(m, refused(Denied))
	case actDouble:
		w.duplicates--
		m := w.net[i]
		m.orphan, m.double = true, true
		w.net = append(w.net, m)
	case actCrash:
		w.crashes--
		if w.procs[i].change != nil {
			w.crashChange(i)
		} else {
			w.crash(i)
		}
	case actExpire:
		w.expiries--
		p := w.own(i)
		w.run(i, p.m.Expire())
	case actRetry:
		p := w.own(i)
		p.attempt++
		p.op.ID = w.cfg.plans[i].op.ID + strconv.Itoa(p.attempt)
		p.state, p.m, p.begun, p.taken, p.record = running, New(p.op), false, false, Record{}
		w.run(i, w.started(p))
	case actTake:
		w.take(i, int(a.b))
	case actAdopt:
		w.adopt(i, int(a.b))
	case actLose:
		w.losing = losing{gone: true, down: true}
	case actRestart:
		w.losing.down = false
	case actBackup:
		w.backup(i)
	case actAstray:
		w.astray.now = true
	case actCorrect:
		w.astray = astray{over: true, other: w.astray.other}
	case actRestore:
		w.restore(i)
	case actNotice:
		w.restoring.noticed = true
	case actHelp:
		w.help(i, int(a.b))
	case actMove:
		if w.tenant == outside {
			w.moves--
		}
		w.move()
	case actCreate, actEdit, actWithdraw, actRelease:
		w.person(a.kind, i)
	case actLook:
		w.own(i).seen = slices.Clone(w.store.cells)
	case actSweep:
		w.sweepAt(i, int(a.b), w.cfg.lease)
	case actBump:
		w.bumps--
		o := *w.store.cells[i].obj
		o.RV = w.store.rv()
		w.store.cells[i].obj = &o
	case actDelete:
		w.deletes--
		w.personDeletes(i)
	case actHold:
		w.foreign--
		o := *w.store.cells[i].obj
		o.Foreign, o.RV = true, w.store.rv()
		w.store.cells[i].obj = &o
	case actUnhold:
		w.unhold(i)
	}
	w.occupied = w.occupied && w.inhabited()
	w.prune()
}

// tellProc delivers reply r to the process that sent message m. The message has already left the
// network.
func (w *world) tellProc(m message, r Reply) {
	if w.own(m.proc).change != nil {
		w.runChange(m.proc, w.handleChange(m.proc, m.cmd, r))
		return
	}
	w.run(m.proc, w.handle(m.proc, m.cmd, r))
}

// crash ends process i. Its messages in flight may still arrive.
func (w *world) crash(i int) {
	p := w.own(i)
	p.m, p.state = nil, crashed
	p.result = Result{}
	p.life++
	for k := range w.net {
		if w.net[k].proc == i {
			w.net[k].orphan = true
		}
	}
	switch {
	case w.cfg.mutant.scrapped, p.taken:
		p.state = done
	case !p.begun && !p.op.Central:
		p.state = done
		p.result.Ending = Aborted
		if p.op.Action == Add && !slices.Contains(w.committed, p.op.ID) && w.cfg.duplicates == w.duplicates {
			w.judgeLeftovers(p, Aborted)
		}
	}
}

func (w *world) recover(i int) {
	p := w.own(i)
	if p.op.Central {
		w.seize(i, p.op.ID)
	}
	if i < len(w.cfg.plans) {
		p.op.Peers = w.configured(p.op.Peers, w.cfg.peersOf(i), "")
		if w.cfg.loss.peer != "" {
			p.op.Patience = Hasty
		}
	}
	p.state, p.m = running, Recover(p.op, cloneRecord(p.record))
	w.run(i, p.m.Start())
}

func (w *world) sweepAt(i, at, lease int) {
	op := Operation{
		ID: "~", Action: Sweep, Mode: w.cfg.mode, Inert: w.cfg.inert, Holds: w.cfg.holds(), Limit: w.cfg.limit(), Target: peerName(at), Met: *w.store.cells[at].obj, Lease: lease, Watch: lease > 0,
	}
	for j := range w.store.cells {
		// A sweep (a check and repair of all peers) meets an object only in a configured peer.
		if j == at || !w.settling && !w.cfg.givenUp || !w.forced(j) && (peerName(j) != w.cfg.loss.peer || !w.dismissed(j)) {
			op.Peers = append(op.Peers, peerName(j))
		}
	}
	p := w.own(i)
	p.op, p.m, p.state = op, New(op), running
	w.run(i, p.m.Start())
}

// prune drops the messages that can no longer have an effect.
func (w *world) prune() {
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		if !m.orphan {
			p := w.procs[m.proc]
			if p.change != nil {
				return !w.split && (m.cmd.Verb == Survey || m.cmd.Verb == ReadPeerSet) && p.change.m != nil && m.cmd.Strand < p.change.m.Earlier
			}
			return !w.split && (m.cmd.Verb == Read || m.cmd.Verb == Sleep) && p.m != nil && m.cmd.Strand < p.m.Earlier
		}
		if m.applied {
			return true
		}
		if m.cmd.onRecord() {
			i := w.store.find(m.cmd.Record)
			switch m.cmd.Verb {
			case Propose:
				return false
			case ReadRecord:
				return true
			}
			return i < 0 || w.store.records[i].history || m.cmd.UID != w.store.records[i].d.UID || m.cmd.RV != w.store.records[i].d.RV
		}
		switch m.cmd.Verb {
		case Create:
			return false
		case PutPeerSet:
			set := w.store.cells[w.store.index(m.cmd.Peer)].set
			return set == nil && m.cmd.RV != "" || set != nil && set.RV != m.cmd.RV
		case Put, Delete:
			o := w.store.cells[w.store.index(m.cmd.Peer)].obj
			return o == nil || !m.cmd.holds(o)
		default:
			return true
		}
	})
}
