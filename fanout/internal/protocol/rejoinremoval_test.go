// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARemovalDuringARejoinNamesNoSuccess restores A with an object that was removed after the backup. Since then,
// another object of its name was added in B. A removal runs during the rejoin of A, and may read the outdated object in
// A. If it reports success (Done or Committed, without a Reason), neither object is in effect in the end. Each run
// begins with another number of steps of the removal, and then of the rejoin.
func TestARemovalDuringARejoinNamesNoSuccess(t *testing.T) {
	for name, mode := range map[string]Mode{"once": Once, "everywhere": Everywhere} {
		t.Run(name, func(t *testing.T) {
			reasons := map[Reason]int{}
			for removed := range 16 {
				for rejoined := 0; rejoined < 40; rejoined += 2 {
					w := twoOfOneName(t, mode)
					w.do(action{actBegin, 2, 0})
					w.steps(2, removed)
					w.do(action{actBegin, 3, 0})
					w.steps(3, rejoined)
					w.end(2)
					result := w.procs[2].result
					reasons[result.Reason]++
					end := w.store
					w.tell = func(_ string, s store) { end = s }
					require.Empty(t, w.complete())
					if result.Reason == "" && (result.Ending == Done || result.Ending == Committed) {
						for _, c := range end.cells {
							require.False(t, c.obj != nil && c.obj.InEffect() && c.obj.Primary(mode),
								"the removal reports %s after %d and %d steps, and %+v remains", result.Ending, removed, rejoined, c.obj)
						}
					}
				}
			}
			t.Logf("%v", reasons)
			require.Positive(t, reasons[Restored], "a removal met the rejoin")
		})
	}
}

// twoOfOneName returns a world in which A was restored with an object, and B has another one of its name.
func twoOfOneName(t *testing.T, mode Mode) stage {
	t.Helper()
	cfg := config{
		mode: mode, peers: 3, committed: "p", restored: "a", detected: true, changes: changes(returnA),
		plans: []plan{removal("r"), add("y", "b", 3, "q"), removal("s")},
	}
	w := stage{t, newWorld(&cfg)}
	w.do(action{actBackup, 0, 0})
	for proc := range 2 {
		w.do(action{actBegin, uint8(proc), 0})
		w.end(proc)
		require.Equal(t, Done, w.procs[proc].result.Ending, fmt.Sprint(proc))
	}
	w.do(action{actRestore, 0, 0})
	return w
}

// steps delivers at most n messages of one process.
func (w stage) steps(proc, n int) {
	w.Helper()
	w.run(proc, func() bool { n--; return n < 0 })
}
