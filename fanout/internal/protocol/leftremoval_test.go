// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARejoinEndsARemovalThatHoldsItsName restores A with an object that was removed after the
// backup. B has a later object of the name, whose removal is committed. The process of this removal
// stopped before it deleted the object. The rejoin of A must end this removal by itself.
func TestARejoinEndsARemovalThatHoldsItsName(t *testing.T) {
	for name, mode := range map[string]Mode{"once": Once, "everywhere": Everywhere} {
		t.Run(name, func(t *testing.T) {
			cfg := config{
				mode: mode, peers: 2, committed: "p", restored: "a", detected: true,
				plans: []plan{removal("r"), add("y", "b", 2, "q"), removal("s")},
			}
			w := stage{t, newWorld(&cfg)}
			w.do(action{actBackup, 0, 0})
			for proc := range 2 {
				w.do(action{actBegin, uint8(proc), 0})
				w.end(proc)
				require.Equal(t, Done, w.procs[proc].result.Ending)
			}
			w.do(action{actBegin, 2, 0})
			w.run(2, func() bool { return w.store.cells[1].obj.Leaving() })
			w.crash(2)

			w.do(action{actRestore, 0, 0})
			require.Empty(t, w.runAlone(returnA))
			require.Nil(t, w.store.cells[1].obj, "the removal is at its end")
		})
	}
}

// TestARejoinEndsAnAddThatHoldsItsName restores A with an object that was removed after the backup. B has the
// reservation of a later add of the same name, whose process stopped. The rejoin of A must abort this add by itself.
func TestARejoinEndsAnAddThatHoldsItsName(t *testing.T) {
	for name, mode := range map[string]Mode{"once": Once, "everywhere": Everywhere} {
		t.Run(name, func(t *testing.T) {
			cfg := config{
				mode: mode, peers: 2, committed: "p", restored: "a", detected: true,
				plans: []plan{removal("r"), add("y", "b", 2, "q")},
			}
			w := stage{t, newWorld(&cfg)}
			w.do(action{actBackup, 0, 0})
			w.do(action{actBegin, 0, 0})
			w.end(0)
			require.Equal(t, Done, w.procs[0].result.Ending)
			w.do(action{actBegin, 1, 0})
			w.run(1, func() bool { o := w.store.cells[1].obj; return o != nil && o.Pending() })
			w.crash(1)

			w.do(action{actRestore, 0, 0})
			require.Empty(t, w.runAlone(returnA))
			require.Nil(t, w.store.cells[1].obj, "the add is at its end")
		})
	}
}

// TestARejoinEndsALaterAddThatHoldsItsName is like TestARejoinEndsAnAddThatHoldsItsName, but the add begins when the rejoin
// has already brought the members' objects to A.
func TestARejoinEndsALaterAddThatHoldsItsName(t *testing.T) {
	for name, mode := range map[string]Mode{"once": Once, "everywhere": Everywhere} {
		t.Run(name, func(t *testing.T) {
			cfg := config{
				mode: mode, peers: 2, committed: "p", restored: "a", detected: true,
				plans: []plan{removal("r"), add("y", "b", 2, "q")}, changes: changes(returnA),
			}
			w := stage{t, newWorld(&cfg)}
			const removing, adding, rejoining = 0, 1, 2
			w.do(action{actBackup, 0, 0})
			w.do(action{actBegin, removing, 0})
			w.end(removing)
			w.do(action{actRestore, 0, 0})
			w.do(action{actBegin, rejoining, 0})
			for w.procs[rejoining].change.m.Phase != chPlacing { // not w.run: the operations of the rejoin are other processes
				w.deliver(0)
			}
			w.do(action{actBegin, adding, 0})
			w.run(adding, func() bool { o := w.store.cells[1].obj; return o != nil && o.Pending() })
			require.NotNil(t, w.store.cells[1].obj)
			w.crash(adding)

			require.Empty(t, w.drain())
			require.Nil(t, w.store.cells[1].obj, "the add is at its end")
			require.Contains(t, []Reason{"", Occupied}, w.procs[rejoining].change.result.Reason)
		})
	}
}
