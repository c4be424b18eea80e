// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// graph holds the states and edges of an exploration. It finds livelocks: the states from which no
// path leads to a state in which all work is done. A check of single states cannot find them.
type graph struct {
	begin []int32 // the first edge of each state, in the order of the states' numbers
	edges []int32
	calm  []int32 // the numbers of the states in which all work is done
}

// node begins the edges of the state with number n.
func (g *graph) node(n int32, calm bool) {
	if g == nil {
		return
	}
	if int(n) != len(g.begin) {
		panic("states are looked at in the order in which they are found")
	}
	g.begin = append(g.begin, int32(len(g.edges)))
	if calm {
		g.calm = append(g.calm, n)
	}
}

func (g *graph) edge(to int32) {
	if g != nil {
		g.edges = append(g.edges, to)
	}
}

// stuck returns how many states have no way to a calm state, and the first such state.
func (g *graph) stuck() (int, int32) {
	states := len(g.begin)
	whence := make([]int32, states+1) // by state: the index, in from, of the first edge that leads to it
	for _, to := range g.edges {
		whence[to]++
	}
	sum := int32(0)
	for i, n := range whence {
		whence[i] = sum
		sum += n
	}
	from := make([]int32, len(g.edges))
	filled := make([]int32, states)
	for i := range states {
		end := len(g.edges)
		if i+1 < states {
			end = int(g.begin[i+1])
		}
		for _, to := range g.edges[g.begin[i]:end] {
			from[whence[to]+filled[to]] = int32(i)
			filled[to]++
		}
	}
	reach := make([]bool, states)
	queue := g.calm
	for _, n := range queue {
		reach[n] = true
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, f := range from[whence[n]:whence[n+1]] {
			if !reach[f] {
				reach[f] = true
				queue = append(queue, f)
			}
		}
	}
	n, first := 0, int32(-1)
	for i, ok := range reach {
		if !ok {
			if n++; first < 0 {
				first = int32(i)
			}
		}
	}
	return n, first
}

// calm reports whether a state at rest has no message that can still arrive and, if the
// configuration has a sweeper, no reservation and no stale replica. Without a sweeper these do not
// count, because a later sweep would clean up.
func (w *world) calm() bool {
	arrives := func(m message) bool {
		return !m.orphan || m.applied || !w.isDown(w.store.index(m.cmd.Peer))
	}
	return !slices.ContainsFunc(w.net, arrives) && (w.cfg.sweepers == 0 || w.settled() == "")
}

// TestStuck makes an operation wait for ever. The exploration finds no state that violates an
// invariant. But stuck finds the states that have no way to rest.
func TestStuck(t *testing.T) {
	e := exploration{graph: &graph{}, cfg: config{
		peers: 2, plans: []plan{add("x", "a", 1, "p"), add("y", "b", 2, "q")},
		mutant: mutant{handled: func(p *proc, cmds []Command) []Command {
			if p.m.Phase == cleaning {
				return nil
			}
			return cmds
		}},
	}}
	require.Empty(t, e.explore())
	n, first := e.graph.stuck()
	require.NotZero(t, n)
	require.Less(t, n, e.states)
	require.NotEmpty(t, e.trace(first, "no way to rest"))
}
