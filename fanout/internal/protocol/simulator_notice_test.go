// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// simulateMutant plays random schedules with m until one fails. It returns the violation and the
// schedule.
func simulateMutant(t *testing.T, m mutant) (string, schedule) {
	t.Helper()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := schedule{cfg: draw(r)}
		if s.cfg.ring > 0 {
			continue // a schedule with a change of the membership may need more than two peers
		}
		s.cfg.mutant = m
		p := newPace(r, &s.cfg)
		what, events := simulate(&s.cfg, nil, p.next)
		if s.events = events; what != "" {
			return what, s
		}
	}
	require.Fail(t, "the simulator did not notice")
	return "", schedule{}
}

// TestShrink breaks a rule and requires a short schedule that shows the violation.
func TestShrink(t *testing.T) {
	what, s := simulateMutant(t, mutant{blind: true, command: func(_ *world, p *proc, c Command) Command {
		if c.Verb == Delete && p.strand(c).Step == stepFence {
			c.RV = ""
		}
		return c
	}})
	short, as := s.shrink(what)
	require.Equal(t, family(what), family(as))
	require.Less(t, len(short.events), 20, short.String())
	require.Less(t, len(short.events), len(s.events))
	require.LessOrEqual(t, len(short.cfg.plans), 2)
	require.LessOrEqual(t, short.cfg.peers, 2, short.String())
	again, events := short.replay(nil)
	require.Equal(t, as, again)
	require.Equal(t, short.events, events, "every event of a shrunk schedule happens")
	require.Contains(t, short.String(), " if u1@ ", "the trace tells what happened")
}

// TestHistoryNotices makes operations return wrong results that only the callers' histories
// show.
func TestHistoryNotices(t *testing.T) {
	for name, lie := range map[string]func(*Result){
		"held, and nobody held it": func(r *Result) {
			if r.Ending == Aborted && r.Reason == Late {
				r.Reason = HeldByOther
			}
		},
		"already done, and by nobody who asked for it": func(r *Result) {
			if r.Ending == Aborted && r.Reason == HeldByOther && r.Holder.Claim.Operation == "o" {
				r.Ending = AlreadyDone
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			what, _ := simulateMutant(t, mutant{over: func(_ *world, p *proc) { lie(&p.m.Result) }})
			require.Equal(t, "history", family(what), what)
		})
	}
}

// TestRemovalOfUnknownPeer removes or updates an object in a peer that the coordinator does
// not have configured. The result must name this peer, and not report that the object is absent.
func TestRemovalOfUnknownPeer(t *testing.T) {
	for mode, want := range map[Mode]Reason{Once: UnknownOwner, Everywhere: Homeless} {
		for _, p := range []plan{removal("r"), update("r", "q")} {
			cfg := config{mode: mode, peers: 3, plans: []plan{add("x", "c", 1, "p"), known(2, p)}}
			w := newWorld(&cfg)
			w.alone = true
			for i := range cfg.plans {
				w.do(action{actBegin, uint8(i), 0})
				require.Empty(t, w.drain())
			}
			got := w.procs[1].result
			require.Equal(t, []any{Aborted, want, "c"}, []any{got.Ending, got.Reason, got.Peer}, "%s %v", p.op.Action, mode)
		}
	}
}

// TestDeleteOfYieldedHome deletes a home that has yielded to a replica, during a move. If the
// replica was deleted before, the move is taken back, and the delete is a removal. Otherwise the
// move is finished, and the delete has no effect. The history must show which of the two happened.
func TestDeleteOfYieldedHome(t *testing.T) {
	for elect, want := range map[bool]Ending{true: Done, false: Aborted} {
		cfg := config{mode: Everywhere, peers: 2, committed: "p", deletes: 2, plans: []plan{move("m", "b"), after(1, add("x", "b", 1, "q"))}}
		deletes := []uint8{0}
		if elect {
			deletes = []uint8{1, 0}
		}
		var last *world
		what, _ := simulate(&cfg, nil, func(w *world) (action, bool) {
			last = w
			switch {
			case len(w.procs) > 0 && w.procs[0].state == idle:
				return action{kind: actBegin}, true
			case !w.store.cells[0].obj.yielded(Everywhere):
				return action{kind: actDeliver}, true
			case len(deletes) > 0:
				at := deletes[0]
				deletes = deletes[1:]
				return action{kind: actDelete, a: at}, true
			}
			return action{}, false
		})
		require.Empty(t, what)
		var said []Ending
		for _, d := range last.history.deeds {
			if d.action == plainDelete {
				said = append(said, d.ending)
			}
		}
		require.Equal(t, []Ending{want}, said)
	}
}
