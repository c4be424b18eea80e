// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// replay rebuilds states from the actions that led to them, and keeps the worlds on the path to the
// last state. The states of one depth are requested in the order in which they were found, so
// neighbours share most of their path, and the steps that they share run only once.
type replay struct {
	path   []int32
	worlds []*world
}

func (r *replay) world(e *exploration, at int32) *world {
	var path []int32
	for n := at; n >= 0; n = e.nodes[n].parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	same := 0
	for same < len(path) && same < len(r.path) && path[same] == r.path[same] {
		same++
	}
	r.path, r.worlds = path, r.worlds[:same]
	for _, n := range path[same:] {
		w := newWorld(&e.cfg)
		if n > 0 {
			w = r.worlds[len(r.worlds)-1].clone()
			w.do(e.nodes[n].act)
		}
		w.key(&e.k) // sorts the messages, since actions refer to them by index
		r.worlds = append(r.worlds, w)
	}
	return r.worlds[len(r.worlds)-1].clone()
}

// enabled returns the actions to follow from w. With e.eager, an operation that may begin without a
// read of shared state begins before all else: any action that could come before that beginning
// could as well come after it, while the operation's first request is on its way.
func (e *exploration) enabled(w *world) []action {
	acts := w.enabled()
	if !e.eager {
		return acts
	}
	for _, a := range acts {
		if a.kind == actBegin && w.beginsAlone(int(a.a)) {
			return []action{a}
		}
	}
	return acts
}

// beginsAlone reports whether process i may begin at any time, and its beginning reads no state
// that other processes write.
func (w *world) beginsAlone(i int) bool {
	if w.cfg.loss.peer != "" || w.cfg.restored != "" || w.cfg.takers > 0 || w.lodger != nil || w.owner != nil || i >= len(w.cfg.plans) {
		return false
	}
	if slices.ContainsFunc(w.cfg.changes, func(op ChangeOperation) bool { return op.Kind == Return }) {
		return false // the process notes the epochs of the peers, which a rejoin raises
	}
	p := w.cfg.plans[i]
	return p.after == 0 && p.member == "" && !p.op.Central && p.op.Action != Adopt
}

// TestReductionsAreHarmless explores small configurations with and without two reductions: hold
// saves memory by rebuilding states, and eager begins operations first. All explorations find no
// violation and reach the same states at rest. Then it breaks rules of the protocol, and explores
// with the reductions: the exploration notices each broken rule.
// ATOLL_EXPLORE=deep takes all configurations of up to 20,000 states and all rules; the default is
// a sample.
func TestReductionsAreHarmless(t *testing.T) {
	limit, some, few := 1000, 3, 24
	if os.Getenv("ATOLL_EXPLORE") == "deep" {
		limit, some, few = 20_000, 1, 1
	}
	reduced := 0
	for n, cfg := range smallConfigs() {
		if n%some > 0 {
			continue
		}
		whole := exploration{cfg: cfg, limit: limit}
		require.Empty(t, whole.explore(), cfg.name)
		if whole.cut {
			continue
		}
		again := exploration{cfg: cfg, hold: 1}
		require.Empty(t, again.explore(), cfg.name)
		require.Equal(t, []any{whole.states, whole.transitions, whole.depth}, []any{again.states, again.transitions, again.depth}, cfg.name)
		require.Equal(t, outcomes(&whole), outcomes(&again), "%s: states that are made again", cfg.name)
		eager := exploration{cfg: cfg, hold: 100, eager: true}
		require.Empty(t, eager.explore(), cfg.name)
		require.Equal(t, outcomes(&whole), outcomes(&eager), "%s: operations that begin at once", cfg.name)
		if eager.states < whole.states {
			reduced++
		}
	}
	require.NotZero(t, reduced)
	for n, b := range allMutants() {
		if testing.Short() || n%few > 0 {
			continue
		}
		e := exploration{cfg: b.cfg, limit: 300_000, eager: true, hold: 1000}
		if b.live {
			e.every = 1
		}
		first, _, _ := strings.Cut(e.explore(), "\n")
		require.Contains(t, first, b.want, "%s is noticed", b.rule)
	}
}

// outcomes returns the states of rest that an exploration came to.
func outcomes(e *exploration) []uint64 { return slices.Sorted(maps.Keys(e.rests)) }
