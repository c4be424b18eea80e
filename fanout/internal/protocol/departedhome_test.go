// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// yieldedAway returns a world in which plan 0 has moved the home (the primary of an Everywhere object) from A to C. A went
// down before the object in A became a replica, and was removed by force. The home moved on to B, and the object was
// removed. Then A is up again. Its object is still yielded: a former home that names the object in C as the next home.
func yieldedAway(t *testing.T, cfg config) stage {
	t.Helper()
	cfg.mode, cfg.peers, cfg.committed, cfg.loss = Everywhere, 3, "p", loss{peer: "a", returns: true}
	cfg.plans = []plan{move("m", "c"), move("n", "b"), removal("r")}
	s := stage{t, newWorld(&cfg)}
	const first, second, removing, forcing = 0, 1, 2, 3
	s.do(action{actBegin, first, 0})
	s.run(first, func() bool { return s.store.cells[2].obj.Primary(Everywhere) })
	s.crash(first)
	require.True(t, s.store.cells[0].obj.yielded(Everywhere))

	s.do(action{actLose, 0, 0})
	for _, proc := range []int{forcing, second, removing} {
		s.do(action{actBegin, uint8(proc), 0})
		s.end(proc)
	}
	require.Nil(t, s.store.cells[1].obj)
	require.Nil(t, s.store.cells[2].obj)
	s.do(action{actRestart, 0, 0})
	return s
}

// TestAMoveDoesNotTakeBackADepartedHome recovers the first move. It must not make the object in A home again.
func TestAMoveDoesNotTakeBackADepartedHome(t *testing.T) {
	s := yieldedAway(t, config{changes: changes(forceA)})
	yielded := *s.store.cells[0].obj
	s.do(action{actRecover, 0, 0})
	s.end(0)
	require.Equal(t, yielded, *s.store.cells[0].obj)
	require.Nil(t, s.store.cells[1].obj)
	require.Nil(t, s.store.cells[2].obj)
}

// TestAJoinDeletesADepartedHomeThatAPersonDeleted: a person deletes the object in A, which our finalizer holds. The join
// of A is completed, and removes the object.
func TestAJoinDeletesADepartedHomeThatAPersonDeleted(t *testing.T) {
	s := yieldedAway(t, config{changes: changes(forceA), deletes: 1})
	s.do(action{actDelete, 0, 0})
	require.True(t, s.store.cells[0].obj.Terminating)
	require.Empty(t, s.runAlone(change("h", Join, "a")))
	require.Nil(t, s.store.cells[0].obj)
}

// TestADepartedHomeIsNotMoved takes A down after an add has committed its object in A, and before the replicas in the
// members are Active. A is removed by force, so the replicas are dead (they hold no name). When A is up again, a move must
// not put the object into effect in a member.
func TestADepartedHomeIsNotMoved(t *testing.T) {
	cfg := config{
		mode: Everywhere, peers: 3, loss: loss{peer: "a", returns: true},
		plans: []plan{add("x", "a", 1, "p"), move("n", "b")}, changes: changes(forceA),
	}
	const adding, moving, forcing = 0, 1, 2
	s := stage{t, newWorld(&cfg)}
	s.do(action{actBegin, adding, 0})
	s.run(adding, func() bool { o := s.store.cells[0].obj; return o != nil && o.Committed() })
	s.crash(adding)
	s.do(action{actLose, 0, 0})
	s.do(action{actBegin, forcing, 0})
	s.end(forcing)
	s.do(action{actRestart, 0, 0})
	s.do(action{actBegin, moving, 0})
	s.end(moving)
	require.Equal(t, Aborted, s.procs[moving].result.Ending)
	require.Equal(t, Membership, s.procs[moving].result.Reason)
	require.False(t, s.store.cells[0].obj.Home.Yielded)
}
