// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"maps"
	"slices"
)

// world is one state of a model. A world that is part of an exploration is not changed in place;
// see clone.
type world struct {
	cfg   *config
	store store
	procs []*proc
	net   []message

	timeouts, unsent, denials, crashes, duplicates, expiries int
	bumps, deletes, foreign, beats, moves                    int
	persons
	losing    losing
	restoring restoring
	astray    astray
	dropped   []string // operations whose content was reported as dropped

	committed []string // operations whose commit was applied
	denied    []string // operations that were reported as aborted
	tenant    tenant
	latest    latest
	lodger    *world // the world of an object in the namespace
	owner     *world // of a lodger's world: the world of its owner
	occupied  bool   // an object has been in the namespace since the owner's deletion was requested
	admitting string // the add of the owner that the tenant has read
	broken    string // the first violation
	alone     bool   // the world shares no process with another world
	tell      func(what string, s store)
	settling  bool // peers removed by force are no longer configured
	history   *history
	split     bool // every command is a message, and so is every reply
}

func newWorld(cfg *config) *world {
	w := &world{
		cfg: cfg, timeouts: cfg.timeouts, denials: cfg.denials, unsent: cfg.unsent, crashes: cfg.crashes, duplicates: cfg.duplicates,
		expiries: cfg.expiries, bumps: cfg.bumps, deletes: cfg.deletes, foreign: cfg.foreign, beats: cfg.beats, moves: cfg.moves, persons: cfg.persons,
	}
	var members []Member
	for i := range cmp.Or(cfg.ring, cfg.peers) {
		members = append(members, Member{Peer: peerName(i), UID: "k" + peerName(i), State: "Active"})
	}
	for i := range cfg.peers {
		w.store.cells = append(w.store.cells, cell{})
		if i < len(members) {
			w.store.cells[i].set = &PeerSet{UID: "s" + peerName(i), RV: w.store.rv(), Self: members[i], Members: members, Epoch: 1}
		}
	}
	w.store.inert, w.store.valve, w.store.laden = cfg.inert, cfg.valve, cfg.laden
	if cfg.committed != "" {
		w.seed(cfg.committed)
	}
	for _, peer := range cfg.strangers {
		w.putObject(w.store.index(string(peer)), "person")
	}
	for _, p := range cfg.plans {
		op := p.op
		op.Holds = cfg.holds()
		op.Inert = cfg.inert
		op.Mode, op.Lease, op.Coordinator = cfg.mode, cfg.lease, op.ID
		if op.Digest == "" {
			op.Digest = digestOf(op.Payload)
		}
		for i := range cmp.Or(p.peers, cfg.peers) {
			op.Peers = append(op.Peers, peerName(i))
		}
		w.procs = append(w.procs, &proc{op: op})
	}
	w.store.blind, w.store.named, w.store.upsert = cfg.mutant.blind, cfg.mutant.named, cfg.mutant.upsert
	for range cfg.sweepers {
		w.procs = append(w.procs, &proc{sweep: true})
	}
	for range cfg.adopters {
		w.procs = append(w.procs, &proc{adopter: true})
	}
	for range cfg.takers {
		w.procs = append(w.procs, &proc{taker: true})
	}
	w.otherRing()
	w.changers()
	w.lodge()
	return w
}

// seed commits an object by the add "o" in the members. Then it makes the replicas in cfg.late
// Reserved, and moves the home as cfg.moved requires.
func (w *world) seed(payload string) {
	m := New(Operation{
		ID: "o", Action: Add, Mode: w.cfg.mode, Target: peerName(max(0, w.cfg.committedAt-1)), Payload: payload, Digest: digestOf(payload), Inert: w.cfg.inert, Lease: w.cfg.lease,
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
	for _, peer := range w.cfg.late {
		at := &w.store.cells[w.store.index(string(peer))]
		x := *at.obj
		x.Stage, x.RV = Reserved, w.store.rv()
		at.obj = &x
	}
	home := m.Op.Target
	for _, to := range w.cfg.moved {
		home = w.moveHome(home, string(to))
	}
}

func (w *world) clone() *world {
	c := *w
	c.store = w.store.clone()
	c.procs = slices.Clone(w.procs)
	c.net = slices.Clone(w.net)
	c.committed = slices.Clip(w.committed)
	c.denied = slices.Clip(w.denied)
	c.alone = false
	c.cloneLodger()
	return &c
}

// own returns process i of a cloned world, as a copy that is safe to change.
func (w *world) own(i int) *proc {
	if w.alone {
		return w.procs[i]
	}
	p := *w.procs[i]
	if p.m != nil {
		p.m = cloneMachine(p.m)
	}
	if p.change != nil {
		ch := *p.change
		if ch.m != nil {
			ch.m = cloneChange(ch.m)
		}
		p.change = &ch
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
	c.Departed = slices.Clone(m.Departed)
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
