// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
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
			w := newWorld(&cfg)
			of := func(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }
			w.do(action{actBackup, 0, 0})
			for proc := range 2 {
				w.do(action{actBegin, uint8(proc), 0})
				for slices.ContainsFunc(w.net, of(proc)) {
					w.deliver(slices.IndexFunc(w.net, of(proc)))
				}
				require.Equal(t, Done, w.procs[proc].result.Ending)
			}
			w.do(action{actBegin, 2, 0})
			for !w.store.cells[1].obj.Leaving() {
				w.deliver(slices.IndexFunc(w.net, of(2)))
			}
			w.do(action{actCrash, 2, 0})
			w.net = slices.DeleteFunc(w.net, of(2))

			w.do(action{actRestore, 0, 0})
			require.Empty(t, w.runAlone(returnA))
			require.Nil(t, w.store.cells[1].obj, "the removal is at its end")
		})
	}
}

// TestARejoinEndsAnAddThatHoldsItsName restores A with an object that was removed after the backup. B has a reservation of
// the name, whose process stopped. The rejoin of A must end this add by itself.
func TestARejoinEndsAnAddThatHoldsItsName(t *testing.T) {
	for name, mode := range map[string]Mode{"once": Once, "everywhere": Everywhere} {
		t.Run(name, func(t *testing.T) {
			cfg := config{
				mode: mode, peers: 2, committed: "p", restored: "a", detected: true,
				plans: []plan{removal("r"), add("y", "b", 2, "q")},
			}
			w := newWorld(&cfg)
			of := func(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }
			w.do(action{actBackup, 0, 0})
			w.do(action{actBegin, 0, 0})
			for slices.ContainsFunc(w.net, of(0)) {
				w.deliver(slices.IndexFunc(w.net, of(0)))
			}
			require.Equal(t, Done, w.procs[0].result.Ending)
			w.do(action{actBegin, 1, 0})
			for o := w.store.cells[1].obj; o == nil || !o.Pending(); o = w.store.cells[1].obj {
				w.deliver(slices.IndexFunc(w.net, of(1)))
			}
			w.do(action{actCrash, 1, 0})
			w.net = slices.DeleteFunc(w.net, of(1))

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
			w := newWorld(&cfg)
			const removing, adding, rejoining = 0, 1, 2
			of := func(proc int) func(message) bool { return func(m message) bool { return m.proc == proc } }
			deliver := func(proc int, until func() bool) {
				for slices.ContainsFunc(w.net, of(proc)) && !until() {
					w.deliver(slices.IndexFunc(w.net, of(proc)))
				}
			}
			never := func() bool { return false }
			w.do(action{actBackup, 0, 0})
			w.do(action{actBegin, removing, 0})
			deliver(removing, never)
			w.do(action{actRestore, 0, 0})
			w.do(action{actBegin, rejoining, 0})
			for w.procs[rejoining].change.m.Phase != chPlacing { // its operations have other processes
				w.deliver(0)
			}
			w.do(action{actBegin, adding, 0})
			deliver(adding, func() bool { o := w.store.cells[1].obj; return o != nil && o.Pending() })
			require.NotNil(t, w.store.cells[1].obj)
			w.do(action{actCrash, adding, 0})
			w.net = slices.DeleteFunc(w.net, of(adding))

			require.Empty(t, w.drain())
			require.Nil(t, w.store.cells[1].obj, "the add is at its end")
			require.Contains(t, []Reason{"", Occupied}, w.procs[rejoining].change.result.Reason)
		})
	}
}
