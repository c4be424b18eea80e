// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// explore checks every order of steps from start on, and returns the number of states.
func explore(t *testing.T, start *model) int {
	t.Helper()
	type node struct {
		m    *model
		last *node
		step step
	}
	fail := func(n *node, wrong string) {
		t.Helper()
		var steps []string
		for ; n.last != nil; n = n.last {
			steps = append(steps, fmt.Sprintf("arbiter %d %s peer %d", n.step.by, n.step.what, n.step.at))
		}
		slices.Reverse(steps)
		require.Fail(t, wrong, "after\n%s", strings.Join(steps, "\n"))
	}
	seed := maphash.MakeSeed()
	seen := map[uint64]bool{maphash.String(seed, start.key()): true}
	stack := []*node{{m: start}}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if wrong := n.m.wrong(); wrong != "" {
			fail(n, wrong)
		}
		// In a state without work in progress: once all arbiters have come to rest, nothing may be
		// unfinished.
		if n.m.idle() {
			if wrong := n.m.rest().unfinished(); wrong != "" {
				fail(n, wrong)
			}
		}
		for _, s := range n.m.steps() {
			next := n.m.clone()
			s.do(next)
			if key := maphash.String(seed, next.key()); !seen[key] {
				seen[key] = true
				stack = append(stack, &node{next, n, s})
			}
		}
	}
	return len(seen)
}

// claimedIn returns a model with these numbers of peers and arbiters; the first n peers have a
// claim.
func claimedIn(n, peers, arbiters int) *model {
	m := newModel(peers, arbiters)
	for p := range n {
		m.create(p)
	}
	return m
}

// heldIn returns the model of claimedIn, in which the first claim holds the region and all arbiters
// know the decision.
func heldIn(n, peers, arbiters int) *model {
	m := claimedIn(1, peers, arbiters).rest()
	for p := 1; p < n; p++ {
		m.create(p)
	}
	return m.rest()
}

func TestNeverTwoAreBoundWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		start  *model
		budget budget
	}{
		"four arrive":                    {newModel(4, 1), budget{create: 4}},
		"two race before two arbiters":   {claimedIn(2, 2, 2), budget{}},
		"arrive before two arbiters":     {newModel(2, 2), budget{create: 2}},
		"replies are lost":               {newModel(2, 1), budget{create: 2, lost: 2}},
		"lost before two arbiters":       {claimedIn(2, 2, 2), budget{lost: 1}},
		"deleted and made again":         {newModel(2, 1), budget{create: 3, remove: 2}},
		"handed over by two arbiters":    {heldIn(2, 2, 2), budget{remove: 1}},
		"made again before two arbiters": {heldIn(2, 2, 2), budget{remove: 1, create: 1}},
		"silent":                         {newModel(2, 1), budget{create: 2, silence: 2}},
		"silent, deleted, handed over":   {heldIn(2, 2, 1), budget{silence: 1, remove: 1, create: 1}},
		"silent before two arbiters":     {heldIn(2, 2, 2), budget{silence: 1, remove: 1}},
		"restored":                       {newModel(2, 1), budget{create: 2, remove: 1, save: 1, restore: 1}},
		"restored before two arbiters":   {heldIn(2, 2, 2), budget{save: 1, remove: 1, restore: 1}},
		"three hand over":                {heldIn(3, 3, 1), budget{remove: 2, create: 1}},
		"three before two arbiters":      {heldIn(3, 3, 2), budget{remove: 1}},
		"left":                           {newModel(2, 1), budget{create: 2, leave: 1}},
		"left before two arbiters":       {heldIn(2, 2, 2), budget{leave: 1}},
		"an arbiter begins anew":         {heldIn(2, 2, 2), budget{restart: 1, remove: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.start.budget = tc.budget
			t.Logf("%s: %d states", name, explore(t, tc.start))
		})
	}
}
