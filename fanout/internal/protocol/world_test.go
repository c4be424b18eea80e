// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// plan is one coordinator of a configuration.
type plan struct {
	op Operation
	// retry begins again, as a new operation, after it gave way.
	retry bool
	// peers are those that it knows of; 0: all.
	peers int
}

// config is a model to explore.
type config struct {
	name     string
	mode     Mode
	peers    int
	plans    []plan
	sweepers int // how many sweeps may be under way at once

	committed string // the payload of an object that is committed at peer a from the start
	person    int    // 1 + the peer in which a person's object stands; 0: none
	join      bool   // the last peer is joining
	tenant    int    // 1 + the peer in which something is added to the namespace that the object owns

	// What may go wrong, and how often.
	timeouts, unsent, denials, crashes, duplicates, expiries int
	bumps, deletes, foreign, beats, moves                    int

	lease      int
	exactlyOne bool // of the adds exactly one content must come into effect
	allSucceed bool // every operation must succeed

	mutant mutant
}

// mutant breaks one rule of the protocol. The zero value breaks none.
type mutant struct {
	command func(w *world, p *proc, c Command) Command
	reply   func(w *world, p *proc, c Command, r Reply) Reply
	over    func(w *world, p *proc)
	handled func(p *proc, cmds []Command) []Command
	stale   bool                          // sweeps read the primary's peer before what they judge
	answer  func(c Command) (Reply, bool) // instead of the peer
	blind   bool                          // a violation is what it leads to, not the broken rule itself
	named   bool                          // a primary's UID is known before it exists
}

// proc is a coordinator, or a sweep.
type proc struct {
	op      Operation // of the current attempt
	m       *Machine  // nil: not begun, crashed or over
	state   procState
	begun   bool   // the log has an entry
	record  Record // what the log has of it
	attempt int
	sweep   bool
	result  Result
	life    int // messages of an earlier life are nobody's
	// seen is what a stale sweep reads instead of the peers.
	seen []cell
}

type procState uint8

const (
	idle procState = iota
	running
	crashed // or over with its entry kept
	waiting // for the rival it gave way to
	done
)

// message is a command on its way.
type message struct {
	proc    int
	life    int
	cmd     Command
	orphan  bool // nobody waits for the answer
	double  bool // the network made it
	applied bool // the answer is on its way
	reply   Reply
}

// world is one state of a model. It is not changed in place.
type world struct {
	cfg   *config
	store store
	procs []*proc
	net   []message

	timeouts, unsent, denials, crashes, duplicates, expiries int
	bumps, deletes, foreign, beats, moves                    int

	committed []string // operations whose commit was applied
	denied    []string // operations that were said to have been aborted
	tenant    tenant
	join      join
	broken    string // the first violation
	alone     bool   // it shares no process with another world
	tell      func(what string, s store)
	split     bool // every command is a message, and every answer another
}

func newWorld(cfg *config) *world {
	w := &world{
		cfg: cfg, timeouts: cfg.timeouts, denials: cfg.denials, unsent: cfg.unsent, crashes: cfg.crashes, duplicates: cfg.duplicates,
		expiries: cfg.expiries, bumps: cfg.bumps, deletes: cfg.deletes, foreign: cfg.foreign, beats: cfg.beats, moves: cfg.moves,
	}
	var members []Member
	for i := range cfg.peers {
		members = append(members, Member{Peer: peerName(i), UID: "k" + peerName(i), State: "Active"})
	}
	for i := range cfg.peers {
		w.store.cells = append(w.store.cells, cell{set: &PeerSet{Self: members[i], Members: members, Epoch: 1}})
	}
	if cfg.join {
		w.joining()
	}
	if cfg.committed != "" {
		w.seed(cfg.committed)
	}
	if cfg.person > 0 {
		w.store.uids++
		w.store.cells[cfg.person-1].obj = &Object{UID: "u" + strconv.Itoa(w.store.uids), RV: w.store.rv(), Payload: "person"}
	}
	for _, p := range cfg.plans {
		op := p.op
		op.Holds = cfg.tenant > 0
		op.Mode, op.Lease, op.Coordinator = cfg.mode, cfg.lease, op.ID
		if op.Digest == "" {
			op.Digest = "d" + op.Payload
		}
		for i := range cmp.Or(p.peers, cfg.peers) {
			op.Peers = append(op.Peers, peerName(i))
		}
		w.procs = append(w.procs, &proc{op: op})
	}
	w.store.blind, w.store.named = cfg.mutant.blind, cfg.mutant.named
	for range cfg.sweepers {
		w.procs = append(w.procs, &proc{sweep: true})
	}
	return w
}

// seed puts a committed object of operation "o" into every peer.
func (w *world) seed(payload string) {
	m := New(Operation{
		ID: "o", Action: Add, Mode: w.cfg.mode, Target: "a", Payload: payload, Digest: "d" + payload, Lease: w.cfg.lease,
	})
	for i := range w.store.cells[0].set.Members {
		m.Op.Peers = append(m.Op.Peers, peerName(i))
	}
	w.procs = []*proc{{op: m.Op, m: m, state: running}}
	w.run(0, m.Start())
	for len(w.net) > 0 {
		w.deliver(0)
	}
	if w.broken != "" || w.procs[0].result.Ending != Done {
		panic("the seed is not committed: " + w.broken)
	}
	w.procs = nil
}

func (w *world) clone() *world {
	c := *w
	c.store = w.store.clone()
	c.procs = slices.Clone(w.procs)
	c.net = slices.Clone(w.net)
	c.committed = slices.Clip(w.committed)
	c.denied = slices.Clip(w.denied)
	c.alone = false
	return &c
}

// own makes proc i of a cloned world safe to change.
func (w *world) own(i int) *proc {
	if w.alone {
		return w.procs[i]
	}
	p := *w.procs[i]
	if p.m != nil {
		p.m = cloneMachine(p.m)
	}
	w.procs[i] = &p
	return &p
}

func cloneMachine(m *Machine) *Machine {
	c := *m
	c.Strands = slices.Clone(m.Strands)
	c.Claims = maps.Clone(m.Claims)
	c.Sets = maps.Clone(m.Sets)
	c.Record = cloneRecord(m.Record)
	c.Result.Peers = slices.Clone(m.Result.Peers)
	c.Result.Pending = slices.Clone(m.Result.Pending)
	c.Result.Occupants = slices.Clone(m.Result.Occupants)
	return &c
}

func cloneRecord(r Record) Record {
	r.Leftover = slices.Clone(r.Leftover)
	return r
}

func (w *world) fault(s string) {
	if w.broken == "" {
		w.broken = s
	}
}

// run sends the commands of proc i. What only concerns the process itself is
// answered at once: nobody else could tell the difference.
func (w *world) run(i int, cmds []Command) {
	p := w.procs[i]
	for len(cmds) > 0 {
		c := cmds[0]
		cmds = cmds[1:]
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

// local says whether a command is answered at once.
func (w *world) local(p *proc, c Command) bool {
	if c.Strand < p.m.Earlier {
		return c.Verb == Sleep
	}
	switch c.Verb {
	case Read, Create, Put, Delete:
		return false
	case List, Settle:
		return w.cfg.tenant == 0
	case ReadPeerSet:
		return !w.cfg.join
	case Sleep:
		// A sleep that only delays the strand's next request adds nothing: that
		// request may be late by itself. A heartbeat competes with the phase,
		// and one who waits for another would run for ever.
		s := p.strand(c)
		return s.Job != jobBeat && s.Step != "wait"
	}
	return true
}

// strand returns the one that sent c.
func (p *proc) strand(c Command) *Strand { return &p.m.Strands[c.Strand-p.m.Earlier] }

func (w *world) handle(i int, c Command, r Reply) []Command {
	p := w.procs[i]
	if w.cfg.mutant.reply != nil && c.Strand >= p.m.Earlier {
		r = w.cfg.mutant.reply(w, p, c, r)
	}
	r.Strand, r.Seq = c.Strand, c.Seq
	cmds := p.m.Handle(r)
	if w.cfg.mutant.handled != nil {
		cmds = w.cfg.mutant.handled(p, cmds)
	}
	return cmds
}

// finish takes note of a machine that is over.
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
		return m.proc == i && !m.orphan && (m.cmd.Verb == Sleep || m.cmd.Verb == Read)
	})
	for j := range w.net {
		if w.net[j].proc == i && !w.net[j].orphan {
			w.fault("over while a request is on its way")
		}
	}
	p.m, p.seen = nil, nil
	switch {
	case p.sweep:
		p.state = idle
		p.op, p.result = Operation{}, Result{}
	case p.result.Keep:
		p.state = crashed
	case p.result.Reason == GaveWay && p.attempt < 3 && i < len(w.cfg.plans) && w.cfg.plans[i].retry:
		p.state = waiting
	default:
		p.state = done
	}
}

// deliver carries message k out and answers it.
func (w *world) deliver(k int) {
	m := w.net[k]
	w.net = slices.Delete(w.net, k, k+1)
	r := m.reply
	if !m.applied {
		r = w.carry(m)
	}
	if m.orphan {
		return
	}
	p := w.own(m.proc)
	if p.life != m.life || p.m == nil {
		return
	}
	w.run(m.proc, w.handle(m.proc, m.cmd, r))
}

// log carries a command to the log out.
func (w *world) log(p *proc, v Verb, record Record) {
	switch v {
	case Begin:
		p.begun = true
		p.record = cloneRecord(record)
	case Advance:
		p.record = cloneRecord(record)
	case Forget:
		p.begun = false
	}
}

// carry applies a message and takes note of what it committed.
func (w *world) carry(m message) Reply {
	if w.cfg.mutant.answer != nil {
		if r, ok := w.cfg.mutant.answer(m.cmd); ok {
			return r
		}
	}
	if m.cmd.Verb == List || m.cmd.Verb == Settle {
		return w.reside(m.cmd)
	}
	switch m.cmd.Verb {
	case Begin, Advance, Forget:
		p := w.procs[m.proc]
		w.log(p, m.cmd.Verb, p.m.Record)
	case Activate, Release:
		if !m.cmd.Object.Claimed || m.cmd.Object.Stage == Reserved {
			w.fault("a reservation is activated in " + m.cmd.Peer)
		}
		if m.cmd.Verb == Release && w.tenant == resident {
			w.fault("the namespace is released under what lives in it")
		}
	case Put, Delete:
		if (m.cmd.UID == "" || m.cmd.RV == "") && !w.cfg.mutant.blind {
			w.fault("I5: a write without preconditions")
		}
	}
	if p := w.procs[m.proc]; p.seen != nil && m.cmd.Verb == Read && !m.orphan {
		if s := p.strand(m.cmd); s.Step == "primary" || s.Step == "rival" {
			old := store{cells: p.seen}
			r, _ := old.apply(w.cfg.mode, m.cmd)
			return r
		}
	}
	if p := w.procs[m.proc]; !p.sweep && !p.begun && !m.orphan && (m.cmd.Verb == Create || m.cmd.Verb == Put || m.cmd.Verb == Delete) {
		w.fault("I8: a write before the log has the operation")
	}
	r, broken := w.store.apply(w.cfg.mode, m.cmd)
	if broken != "" {
		w.fault(broken)
	}
	if r.Class == Applied && m.cmd.Verb == Put {
		w.commits(r.Object)
	}
	return r
}

// commits notes every operation whose effect o shows.
func (w *world) commits(o Object) {
	note := func(op string) {
		if op == "" || slices.Contains(w.committed, op) {
			return
		}
		w.committed = append(w.committed, op)
		slices.Sort(w.committed)
		if slices.Contains(w.denied, op) {
			w.fault("I4: " + op + " is committed after it was said to be aborted")
		}
	}
	if !o.Claimed || o.Stage == Reserved || !o.Primary(w.cfg.mode) {
		return
	}
	note(o.Claim.Operation)
	note(o.Removal)
	if w.cfg.mode == Everywhere {
		note(o.Revision.Operation)
	}
}
