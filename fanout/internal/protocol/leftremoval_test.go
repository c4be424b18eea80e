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
