// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndsWhenRefused lets one peer and the log fail each request of one verb for ever, all with
// the same reply. Whatever its patience, a machine must end within 300 replies after its deadline
// at the latest.
func TestEndsWhenRefused(t *testing.T) {
	refusals := []Reply{
		{Class: NotApplied, Code: Denied},
		{Class: NotApplied, Code: Unavailable},
		{Class: Unknown, Code: Unavailable},
		{Class: NotApplied, Code: NoSuchPeer},
		{Class: NotApplied, Code: NotFound},
	}
	plans := []plan{add("x", "a", 1, "p"), add("y", "b", 1, "q"), update("u", "q"), removal("r"), {op: Operation{ID: "s", Action: Sweep}}}
	for _, mode := range []Mode{Once, Everywhere} {
		for _, peer := range []string{"a", "b"} {
			for _, verb := range []Verb{Create, Read, Put, Delete, ReadPeerSet, ReadOwner, List, Settle, Activate, Release, Advance, Forget, Begin} {
				for _, refusal := range refusals {
					if refusal.Code == NotFound && (verb == Put || verb == Delete) {
						// Reads in this peer still find the object, so NotFound for a write contradicts them.
						continue
					}
					for _, p := range plans {
						for _, patience := range []Patience{Hasty, Patient, Onward} {
							for _, present := range []int{0, 1, 2, 3} {
								p.op.Patience = patience
								p.op.Within, p.op.Holds = mode == Once, mode == Everywhere
								name := fmt.Sprintf("%s %v patience %d on %d, %s %v refused by %s", p.op.ID, mode, patience, present, verb, refusal.Code, peer)
								ends(t, name, mode, p, present, peer, verb, refusal)
							}
						}
					}
				}
			}
		}
	}
}

// ends runs p while one peer, and the log, answer verb with refusal, and requires that p ends.
func ends(t *testing.T, name string, mode Mode, p plan, present int, peer string, verb Verb, refusal Reply) {
	t.Helper()
	cfg := config{name: name, mode: mode, peers: 2, plans: []plan{p}, lease: 2}
	if p.op.Action == Sweep {
		cfg.plans = nil
	}
	switch present {
	case 1:
		cfg.committed = "p"
	case 2: // an older add that crashed after one message
		cfg.plans = append(cfg.plans, add("z", "a", 0, "z"))
	case 3: // a younger add that crashed after two messages
		cfg.plans = append(cfg.plans, add("z", "b", 9, "z"))
	}
	w := newWorld(&cfg)
	w.alone = true
	if present > 1 {
		w.do(action{actBegin, uint8(len(cfg.plans) - 1), 0})
		for n := 1; n < present; n++ {
			w.do(action{kind: actDeliver})
		}
		w.crashes = 1
		w.do(action{actCrash, uint8(len(cfg.plans) - 1), 0})
		w.net = nil
	}
	w.split = true
	cfg.mutant.answer = func(c Command) (Reply, bool) {
		return refusal, c.Verb == verb && (c.Peer == peer || c.Peer == "")
	}
	if p.op.Action == Sweep {
		w.procs = append(w.procs, &proc{sweep: true})
		for i, c := range w.store.cells {
			if c.obj != nil {
				w.sweepAt(len(w.procs)-1, i, 1)
				requireEnds(t, name, w, len(w.procs)-1)
			}
		}
		return
	}
	w.do(action{kind: actBegin})
	requireEnds(t, name, w, 0)
}

func requireEnds(t *testing.T, name string, w *world, i int) {
	t.Helper()
	for n := 0; w.procs[i].m != nil; n++ {
		if n == 200 {
			w.run(i, w.procs[i].m.Expire())
		}
		require.Less(t, n, 500, "%s: no end in %s", name, w.procs[i].op.ID)
		require.NotEmpty(t, w.net, "%s: it waits for nothing", name)
		w.deliver(0)
	}
}
