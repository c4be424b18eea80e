// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHistoryOfCentralAdds plays a schedule that the simulator found with seed 78. Add y gives way to
// the older add x: y is aborted, and is committed under a new ID later. In the history this is a
// second request. An adopter (a process that settles records) adds no request.
func TestHistoryOfCentralAdds(t *testing.T) {
	z := central(add("z", "b", 3, "q"))
	z.after = 2
	r := removal("r")
	r.after = 1
	cfg := config{peers: 2, adopters: 1, lease: live, plans: []plan{
		central(add("x", "a", 1, "p")), retrying(central(add("y", "b", 2, "q"))), r, z,
	}}
	var last *world
	what, _ := simulate(&cfg, nil, func(w *world) (action, bool) {
		last = w
		acts := w.enabled()
		// Deliver to the older rival until it has its claims, then to the younger one. Run all
		// other operations one after another.
		ahead := 1
		if slices.ContainsFunc(w.store.cells, func(c cell) bool { return c.obj == nil }) {
			ahead = 0
		}
		for i, m := range w.net {
			if m.proc == ahead && !slices.ContainsFunc(acts, func(a action) bool { return a.kind == actBegin && a.a < 2 }) {
				return action{actDeliver, uint8(i), 0}, true
			}
		}
		for _, k := range []kind{actBegin, actDeliver, actRetry} {
			i := slices.IndexFunc(acts, func(a action) bool {
				return a.kind == k && (k != actBegin || a.a < 2 || len(w.net) == 0)
			})
			if i >= 0 {
				return acts[i], true
			}
		}
		return action{}, false
	})
	require.Empty(t, what)
	told := map[string]Ending{}
	for _, d := range last.history.deeds {
		told[d.id] = d.ending
	}
	require.Equal(t, map[string]Ending{"x": Done, "y": Aborted, "r": Done, "y1": Done, "z": AlreadyDone}, told)
}
