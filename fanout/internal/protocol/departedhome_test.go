// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAMoveDoesNotTakeBackADepartedHome moves the home from A to C. A is lost before it is brought to the new home's
// state, and is removed by force. The home moves on to B, and the object is removed. Then A returns with the home that
// yielded to C. The recovery of the first move must not make it the home again.
func TestAMoveDoesNotTakeBackADepartedHome(t *testing.T) {
	cfg := config{
		mode: Everywhere, peers: 3, committed: "p", loss: loss{peer: "a", returns: true},
		plans: []plan{move("m", "c"), move("n", "b"), removal("r")}, changes: changes(forceA),
	}
	const first, second, removing, forcing = 0, 1, 2, 3
	w := newWorld(&cfg)
	of := func(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }
	run := func(proc int, until func() bool) {
		t.Helper()
		for slices.ContainsFunc(w.net, of(proc)) && !until() {
			w.deliver(slices.IndexFunc(w.net, of(proc)))
		}
		require.Empty(t, w.check())
	}
	over := func(proc int) func() bool {
		return func() bool { return !slices.ContainsFunc(w.net, of(proc)) && w.procs[proc].m == nil }
	}

	w.do(action{actBegin, first, 0})
	run(first, func() bool { return w.store.cells[2].obj.Primary(Everywhere) })
	w.do(action{actCrash, first, 0})
	w.net = slices.DeleteFunc(w.net, of(first))
	yielded := *w.store.cells[0].obj
	require.True(t, yielded.yielded(Everywhere))

	w.do(action{actLose, 0, 0})
	w.do(action{actBegin, forcing, 0})
	run(forcing, func() bool { return w.procs[forcing].change.m == nil })
	w.do(action{actBegin, second, 0})
	run(second, over(second))
	require.True(t, w.store.cells[1].obj.Primary(Everywhere))
	w.do(action{actBegin, removing, 0})
	run(removing, over(removing))
	require.Nil(t, w.store.cells[1].obj)
	require.Nil(t, w.store.cells[2].obj)

	w.do(action{actRestart, 0, 0})
	w.do(action{actRecover, first, 0})
	run(first, over(first))
	require.Equal(t, yielded, *w.store.cells[0].obj)
	require.Nil(t, w.store.cells[1].obj)
	require.Nil(t, w.store.cells[2].obj)
}
