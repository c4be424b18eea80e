// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAJoinEndsAfterASweepOfALateReservation removes A by force while an add in A is under way. A is up again with its
// old PeerSet, and the add creates its primary there. C is joining. After the join has listed C, the add creates its
// reservation in C, and then its process crashes. The processes of the join keep this reservation, because the primary
// in A shows that the add may still be running. A sweep (a check and repair) of C deletes the reservation.
func TestAJoinEndsAfterASweepOfALateReservation(t *testing.T) {
	cfg := config{
		mode: Once, peers: 3, ring: 2, loss: loss{peer: "a", returns: true},
		givenUp: true, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")}, changes: changes(forceA, change("j", Join, "c")),
	}
	cfg.plans[1].peers = 2 // C is not configured yet
	const adding, later, forcing, joining = 0, 1, 2, 3
	s := stage{t, newWorld(&cfg)}
	s.do(action{actBegin, adding, 0})
	creates := func() bool { return slices.ContainsFunc(s.net, func(m message) bool { return m.cmd.Verb == Create }) }
	s.run(adding, creates)
	s.do(action{actLose, 0, 0})
	s.do(action{actBegin, forcing, 0})
	s.end(forcing)
	s.do(action{actBegin, later, 0})
	s.run(later, creates)
	s.do(action{actBegin, joining, 0})
	surveyed := false
	s.run(joining, func() bool {
		surveys := slices.ContainsFunc(s.net, func(m message) bool { return m.cmd.Verb == Survey && m.cmd.Peer == "c" })
		surveyed = surveyed || surveys
		return surveyed && !surveys
	})
	s.do(action{actRestart, 0, 0})
	s.run(adding, func() bool { return s.store.cells[2].obj != nil })
	s.do(action{actCrash, adding, 0})
	s.end(later)
	require.Equal(t, Done, s.procs[later].result.Ending)
	require.Equal(t, Reserved, s.store.cells[2].obj.Stage)
	require.Empty(t, s.complete())
}
