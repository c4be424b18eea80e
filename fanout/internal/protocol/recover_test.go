// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRecoveryWaitsForNobody crashes the process of an operation after each of its commands, for
// each kind of operation, and recovers the operation while one peer is unreachable or not
// configured. The recovery must end without that peer, although the operation is Patient, which
// lets it try until its deadline.
func TestRecoveryWaitsForNobody(t *testing.T) {
	for _, mode := range []Mode{Once, Everywhere} {
		plans := []plan{add("x", "a", 1, "p"), add("x", "b", 1, "p"), central(add("x", "a", 1, "p")), removal("x"), adoption("x", "a")}
		if mode == Everywhere {
			plans = append(plans, update("x", "q"), move("x", "b"))
		}
		for _, p := range plans {
			for _, code := range []Code{Unavailable, NoSuchPeer} {
				for _, peer := range []string{"a", "b"} {
					for n := 0; recoversFrom(t, mode, p, n, peer, code); n++ {
						require.Less(t, n, 100)
					}
				}
			}
		}
	}
}

// recoversFrom crashes the process of p after n commands and recovers p, while each reply of peer is
// code. It returns false if p is over before it has sent n commands.
func recoversFrom(t *testing.T, mode Mode, p plan, n int, peer string, code Code) bool {
	t.Helper()
	p.op.Patience = Patient
	cfg := config{mode: mode, peers: 3, lease: 2, crashes: 1, plans: []plan{p}}
	switch p.op.Action {
	case Add:
	case Adopt:
		cfg.strangers = "a"
	default:
		cfg.committed = "p"
	}
	w := newWorld(&cfg)
	w.alone, w.split = true, true
	w.do(action{kind: actBegin})
	for range n {
		if len(w.net) == 0 {
			return false
		}
		w.deliver(0)
	}
	if w.procs[0].m == nil {
		return false
	}
	w.do(action{kind: actCrash})
	w.net = nil
	if w.procs[0].state != crashed {
		return true
	}
	cfg.mutant.answer = func(c Command) (Reply, bool) { return refused(code), c.Peer == peer }
	w.do(action{kind: actRecover})
	require.Empty(t, w.drain(), "%s %v of %s, ended after %d commands, without %s: %v", p.op.Action, mode, p.op.Target, n, peer, code)
	require.Nil(t, w.procs[0].m)
	return true
}

// TestRemovalAmongOthers recovers a removal whose object is gone, after another object took
// the name in a peer that the removal's coordinator does not have configured. The removal
// returns Done, and is not in doubt because of the other object.
func TestRemovalAmongOthers(t *testing.T) {
	cfg := config{mode: Everywhere, peers: 3, committed: "p", crashes: 1, sweepers: 1, plans: []plan{known(2, removal("r")), add("x", "c", 1, "q")}}
	w := newWorld(&cfg)
	w.alone = true
	w.do(action{kind: actBegin})
	for w.store.cells[0].obj.Stage != Removing {
		require.NotEmpty(t, w.net)
		w.deliver(0)
	}
	w.do(action{kind: actCrash})
	w.net = nil
	sweeper := len(w.procs) - 1
	for slices.ContainsFunc(w.store.cells, func(c cell) bool { return c.obj != nil }) {
		require.Empty(t, w.sweepAll(sweeper))
	}
	w.do(action{kind: actBegin, a: 1})
	require.Empty(t, w.drain())
	require.Equal(t, Done, w.procs[1].result.Ending)
	w.do(action{kind: actRecover})
	require.Empty(t, w.drain())
	require.Equal(t, Done, w.procs[0].result.Ending, "the object there is not the one that it removes: %v", w.procs[0].result)
}

// TestRecoveryThatIsRefused recovers an add whose primary is gone. The object may be in effect in
// the peer to which its home has moved. If that peer rejects the read, the add is in doubt.
func TestRecoveryThatIsRefused(t *testing.T) {
	op := add("x", "a", 1, "p").op
	op.Mode, op.Peers = Everywhere, []string{"a", "b"}
	m := Recover(op, Record{Primary: Ref{Peer: "a", UID: "u"}, Committing: true})
	cmds := m.Start()
	for n := 0; len(cmds) > 0; n++ {
		require.Less(t, n, 100)
		c := cmds[0]
		r := Reply{Strand: c.Strand, Seq: c.Seq, Class: Applied, Code: OK}
		switch {
		case c.Verb == Read && c.Peer == "a":
			r.Code = NotFound
		case c.Peer == "b":
			r.Class, r.Code = NotApplied, Denied
		}
		cmds = append(cmds[1:], m.Handle(r)...)
	}
	require.True(t, m.Over())
	require.Equal(t, InDoubt, m.Result.Ending)
	require.True(t, m.Result.Keep)
}
