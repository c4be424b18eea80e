// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
)

// proc is a process: a coordinator with its operation or its change of the membership, or a sweep.
type proc struct {
	op      Operation // the operation of the current attempt
	m       *Machine  // nil: not begun, crashed or over
	state   procState
	begun   bool   // the log has an entry
	record  Record // the state of op in that entry
	attempt int
	sweep   bool
	adopter bool // the process settles records of the central log
	taker   bool // the process takes over entries that others work on, or have left
	taken   bool // a taker has taken over its entry
	plain   bool // the mutant forward does not change this process
	result  Result
	// overtaken is set if another operation's revision was in effect when op was over.
	overtaken bool
	life      int // messages of an earlier life are dropped
	change    *changer
	spawned   bool // the process carries out a command of a changer
	asked     asked
	// seen is the earlier state of the peers from which a mutant makes the process read primaries or
	// owners; nil: the process reads the present state.
	seen []cell
}

type procState uint8

const (
	idle procState = iota
	running
	crashed // or over, and its log entry is kept
	waiting // for the rival it gave way to
	done
)

// run sends the commands of proc i. Commands that concern only the process itself get their
// reply at once: no other process could notice a difference.
func (w *world) run(i int, cmds []Command) {
	p := w.procs[i]
	for len(cmds) > 0 {
		c := cmds[0]
		cmds = cmds[1:]
		if w.cfg.laden && p.op.Action == Add {
			c = earlier(c)
		}
		if w.cfg.mutant.command != nil {
			c = w.cfg.mutant.command(w, p, c)
		}
		m := message{proc: i, life: p.life, cmd: c}
		if w.split || !w.local(p, c) {
			w.net = append(w.net, m)
			continue
		}
		cmds = append(cmds, w.handle(i, c, w.carry(m))...)
	}
	w.finish(i)
}

// local reports whether a command gets its reply at once.
func (w *world) local(p *proc, c Command) bool {
	if c.Strand < p.m.Earlier {
		return c.Verb == Sleep
	}
	if c.onRecord() {
		return false
	}
	switch c.Verb {
	case Read, Create, Put, Delete:
		return false
	case List, Settle:
		return w.cfg.tenant == 0 && w.cfg.lodger == nil
	case ReadOwner:
		return w.owner == nil
	case ReadPeerSet:
		// The PeerSets of peers other than the primary's are read to report errors early,
		// not for safety.
		return len(w.cfg.changes) == 0 || c.Peer != p.m.Record.Primary.Peer && !w.cfg.reads
	case Sleep:
		// A sleep before a request needs no step of its own, because the request may be late anyway. Two
		// sleeps need one: between heartbeats, which run beside the phase's other tasks, and while an
		// operation waits for another one, because this loop would never end within one step.
		s := p.strand(c)
		return s.Task != taskBeat && s.Step != stepWait
	}
	return true
}

// strand returns the strand that sent c.
func (p *proc) strand(c Command) *Strand { return &p.m.Strands[c.Strand-p.m.Earlier] }

func (w *world) handle(i int, c Command, r Reply) []Command {
	p := w.procs[i]
	if w.cfg.mutant.reply != nil && c.Strand >= p.m.Earlier {
		r = w.cfg.mutant.reply(w, p, c, r)
	}
	r.Strand, r.Seq = c.Strand, c.Seq
	var cmds []Command
	if p.m.first() {
		cmds = p.m.handleFirst(r)
	} else {
		cmds = p.m.Handle(r)
	}
	if w.cfg.mutant.handled != nil {
		cmds = w.cfg.mutant.handled(p, cmds)
	}
	return cmds
}

// finish records the result of a machine that is over.
func (w *world) finish(i int) {
	p := w.procs[i]
	if p.m == nil || !p.m.Over() {
		return
	}
	if w.cfg.mutant.over != nil {
		w.cfg.mutant.over(w, p)
	}
	p.result = p.m.Result
	w.judge(p)
	p.life++
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		return m.proc == i && !m.orphan && (m.cmd.Verb == Sleep || m.cmd.Verb == Read || m.cmd.Verb == ReadPeerSet)
	})
	for j := range w.net {
		if w.net[j].proc == i && !w.net[j].orphan {
			w.fault("over while a request is on its way")
		}
	}
	p.m, p.seen = nil, nil
	if p.spawned {
		a, r := p.asked, p.result
		p.op, p.result, p.asked, p.state = Operation{}, Result{}, asked{}, idle
		w.answer(a, Reply{Class: Applied, Code: OK, Result: r})
		return
	}
	switch {
	case p.sweep, p.adopter:
		p.state = idle
		p.op, p.result = Operation{}, Result{}
	case p.taken && p.result.Reason != GaveWay:
		p.state = done
	case p.result.Keep:
		p.state = crashed
	case p.result.Reason == GaveWay && p.attempt < 3 && i < len(w.cfg.plans) && w.cfg.plans[i].retry:
		p.state = waiting
	default:
		p.state = done
	}
}

// log applies a command to the log.
func (w *world) log(p *proc, v Verb, record Record) Reply {
	if p.taken {
		return refused(Conflict)
	}
	switch v {
	case Begin:
		w.history.begins(p.op)
		p.begun = true
		p.record = cloneRecord(record)
	case Advance:
		p.record = cloneRecord(record)
	case Forget:
		p.begun = false
	}
	return Reply{Class: Applied, Code: OK}
}
