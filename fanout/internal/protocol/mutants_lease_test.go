// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// leaseMutants break the rules of leases, the log and fences. To fence an operation is to delete its
// Reserved primary, which aborts the operation.
var leaseMutants = []broken{
	// The protocol keeps no list of fenced operations that could be dropped too early. The fence is
	// the UID of the deleted primary, which no API server assigns again. This mutant assigns it
	// again.
	{n: "N2", rule: "a fence is for ever", cfg: config{
		peers: 2, sweepers: 1, duplicates: 1, plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{named: true},
	}, want: "I2"},
	{n: "N4", rule: "judgements use quorum reads", cfg: config{
		peers: 2, sweepers: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); s.Task == taskJudge && s.Step == stepPrimary && r.Object.Committed() {
				return refused(NotFound) // from a cache that has not seen the create
			}
			return r
		}},
	}, want: "I2"},
	{n: "N6", rule: "a recovery never commits an add", cfg: config{
		peers: 2, crashes: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if m := p.m; m.Resumed && m.Phase == fencing && m.Primary.UID != "" && m.Record.Primary.UID == "" {
				m.Record.Primary.UID = m.Primary.UID
				m.enter(committing)
				commitJob{m}.begin()
				return m.take()
			}
			return cmds
		}},
	}, want: "I2"},
	// The mutant deletes the secondary once the lease has run out, and does not fence the primary.
	// By its own clock the primary's coordinator is still in time.
	{n: "N8", rule: "a lease says when to try, not whether a commit is valid", cfg: config{
		peers: 2, sweepers: 1, lease: 2, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if s := p.strand(c); p.sweep && s.Step == stepPrimary && r.Object.Pending() && s.Quiet+1 >= p.op.Lease {
				return refused(NotFound)
			}
			return r
		}},
	}, want: "I2"},
	{n: "N14", rule: "a reservation has a lease", cfg: config{
		peers: 2, sweepers: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p")},
		mutant: mutant{scrapped: true, command: func(_ *world, p *proc, c Command) Command {
			if p.sweep && c.Verb == Delete && p.strand(c).Step == stepFence {
				c.Verb = Read // as if every reservation could be alive
			}
			return c
		}},
	}, want: "it finds no end", live: true},
	{n: "N19", rule: "the log forgets last", cfg: config{
		peers: 2, crashes: 1, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == fencing || p.m.Phase == cleaning {
				p.begun = false
			}
			return cmds
		}},
	}, want: "I8"},
}

// TestScrapped loses a coordinator with its log for ever: other processes fence its reservations
// once the lease has run out. (N14)
func TestScrapped(t *testing.T) {
	for _, mode := range []Mode{Once, Everywhere} {
		explore(t, config{
			name: "a machine is scrapped", mode: mode, peers: 2, sweepers: 1, crashes: 1, lease: 2,
			plans: []plan{add("x", "a", 1, "p")}, mutant: mutant{scrapped: true},
		}, 0)
	}
}

// TestHeartbeat delays the last reservation of an add, while a sweeper watches the primary of the
// add. Time passes equally for the add and the sweeper. The sweeper fences the primary only if the
// heartbeats of the add do not change the primary's resource version. (N22)
func TestHeartbeat(t *testing.T) {
	// fenced reports whether the sweeper fences the reservation.
	fenced := func(m mutant) bool {
		cfg := config{peers: 2, sweepers: 1, lease: 6, plans: []plan{add("x", "a", 1, "p")}, mutant: m}
		w := newWorld(&cfg)
		w.split, w.alone = true, true
		w.do(action{kind: actBegin})
		sent := func(proc int, v Verb) int {
			for k, m := range w.net {
				if m.proc == proc && m.cmd.Verb == v && m.cmd.Peer != "b" {
					return k
				}
			}
			return -1
		}
		deliver := func(proc int, verbs ...Verb) {
			for again := true; again; {
				again = false
				for _, v := range verbs {
					if k := sent(proc, v); k >= 0 {
						w.deliver(k)
						again = true
					}
				}
			}
		}
		deliver(0, Begin, Create)
		w.sweepAt(1, 0, cfg.lease)
		for range 100 {
			deliver(0, Put)
			deliver(1, Read, Delete)
			if w.store.cells[0].obj == nil {
				return true
			}
			for proc := range 2 {
				if k := sent(proc, Sleep); k >= 0 {
					w.deliver(k)
				}
			}
		}
		return false
	}
	require.False(t, fenced(mutant{}), "a live reservation is fenced")
	require.True(t, fenced(mutant{command: func(_ *world, p *proc, c Command) Command {
		if c.Verb == Put && p.strand(c).Task == taskBeat {
			c.Object.Heartbeat-- // the same bytes as before: the resource version stays
		}
		return c
	}}), "a write of the same bytes is no sign of life")
}
