// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// explore goes through every order in which things can happen, up to limit states, and
// returns how many there were.
func explore(t *testing.T, start *model, limit int) int {
	t.Helper()
	type node struct {
		m    *model
		last *node
		what string
	}
	trace := func(n *node) string {
		var steps []string
		for ; n.last != nil; n = n.last {
			steps = append([]string{n.what}, steps...)
		}
		return strings.Join(steps, "\n")
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{maphash.String(seed, start.key()): true}
	stack := []*node{{m: start}}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if wrong := n.m.wrong(); wrong != "" {
			t.Fatalf("%s after\n%s", wrong, trace(n))
		}
		// Whatever is under way comes to an end in some other state.
		if n.m.idle() {
			if wrong := n.m.rest().unfinished(); wrong != "" {
				t.Fatalf("%s after\n%s", wrong, trace(n))
			}
		}
		for _, s := range n.m.steps() {
			next := n.m.clone()
			s.do(next)
			if key := maphash.String(seed, next.key()); !seen[key] {
				seen[key] = true
				stack = append(stack, &node{next, n, s.what})
			}
		}
		require.Less(t, len(seen), limit, "the model is larger than expected")
	}
	return len(seen)
}

func TestNeverTwoAreBoundWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		peers, arbiters int
		budget          budget
	}{
		"claims race before two arbiters": {2, 2, budget{create: 2}},
		"deleted and made again":          {2, 1, budget{create: 3, remove: 1}},
		"a peer goes silent":              {2, 1, budget{create: 2, silence: 1}},
		"replies are lost":                {2, 1, budget{create: 2, lost: 2}},
		"restored":                        {2, 1, budget{create: 2, remove: 1, save: 1, restore: 1}},
		"left":                            {2, 1, budget{create: 2, leave: 1}},
		"XX":                            {2, 2, budget{create: 2, remove: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			states := explore(t, newModel(tc.peers, tc.arbiters, tc.budget), 2_000_000)
			t.Logf("%d states", states)
		})
	}
}
