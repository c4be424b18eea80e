// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

var joinB = change("j", Join, "b")

// beyond are configurations with changes of the membership, in the smallest rings that allow them.
// rules names rules that the configuration needs: if one of them is broken, a schedule goes wrong.
// TestExploreBeyond explores the configuration to the end, or deeper than the shortest such
// schedule of each rule.
var beyond = []struct {
	cfg   config
	rules []string
}{
	{config{name: "2f join B, update, removal", mode: Everywhere, peers: 2, ring: 1, committed: "p", changes: changes(joinB),
		plans: []plan{update("x", "q"), removal("r")}}, []string{"an update reads the members after its commit", "a removal reads the members after its commit"}},
	{config{name: "7b joins B and C, X@B", peers: 3, ring: 1, changes: changes(joinB, change("k", Join, "c")),
		plans: []plan{known(2, add("x", "b", 1, "p"))}}, []string{"there is one change at a time"}},
	{config{name: "7b joins B and C, X@A, Y@B", peers: 3, ring: 1, changes: changes(joinB, change("k", Join, "c")),
		plans: []plan{known(1, add("x", "a", 1, "p")), known(2, add("y", "b", 2, "q"))}}, []string{"there is one change at a time"}},
	{config{name: "7e join C, leave B, X@B", peers: 3, ring: 2, changes: changes(joinC, leaveB),
		plans: []plan{known(2, add("x", "b", 1, "p"))}}, []string{"there is one change at a time", "a leaving peer is marked before it is drained"}},
	{config{name: "7e join C, leave B, Y@C", peers: 3, ring: 2, changes: changes(joinC, leaveB),
		plans: []plan{add("y", "c", 2, "q")}}, []string{"there is one change at a time"}},
	{config{name: "7g force B, comeback, X@B", peers: 2, lease: live, changes: changes(forceB, returnB),
		plans: []plan{add("x", "b", 1, "p")}}, nil},
	{config{name: "7g force B, comeback, X@B, sweep", peers: 2, lease: live, sweepers: 1, givenUp: true, inTurn: true, changes: changes(forceB, returnB),
		plans: []plan{add("x", "b", 1, "p")}}, []string{"reservations in a rejoining peer are fenced", "a rejoining peer is marked before its objects are settled"}},
	{config{name: "7g force B, comeback, owner, Y@A", peers: 2, lease: live, committed: "p", committedAt: 2, changes: changes(forceB, returnB),
		plans: []plan{known(1, add("y", "a", 2, "q"))}}, []string{"objects of a rejoining peer are guarded before it is a member"}},
}

// TestExploreBeyond explores each configuration of beyond to its end, or deeper than the shortest
// schedule that goes wrong if one of its rules is broken. ATOLL_EXPLORE=deep runs it.
func TestExploreBeyond(t *testing.T) {
	if os.Getenv("ATOLL_EXPLORE") != "deep" {
		t.Skip("ATOLL_EXPLORE is not deep: these configurations take minutes")
	}
	var b strings.Builder
	b.WriteString("| configuration | schedules | states | without the rule | goes wrong after |\n|---|---|---|---|---|\n")
	for _, c := range beyond {
		sound := exploration{cfg: c.cfg, limit: 1_000_000, hold: 100_000, eager: true, graph: &graph{}}
		require.Empty(t, sound.explore(), c.cfg.name)
		far := fmt.Sprintf("%d steps", sound.depth)
		if !sound.cut {
			lost, first := sound.graph.stuck()
			require.Zero(t, lost, "%s", sound.trace(max(0, first), "L1: no way to rest"))
			far = "all"
		}
		var rules, after []string
		for _, rule := range c.rules {
			steps := wrongAfter(t, c.cfg, rule)
			require.True(t, !sound.cut || sound.depth > steps, "%s: %s goes wrong after %d steps, and %d were explored", c.cfg.name, rule, steps, sound.depth)
			rules, after = append(rules, rule), append(after, fmt.Sprintf("%d steps", steps))
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s |\n", c.cfg.name, far, sound.states, strings.Join(rules, "; "), strings.Join(after, "; "))
		t.Log(c.cfg.name, far, sound.states, rules, after)
	}
	docpage.Section(t, "exploration.md", "beyond", b.String())
}

// wrongAfter returns the number of steps of the shortest schedule of cfg that goes wrong if the
// rule is broken.
func wrongAfter(t *testing.T, cfg config, rule string) int {
	t.Helper()
	for _, b := range allMutants() {
		if b.rule != rule {
			continue
		}
		cfg.mutant = b.cfg.mutant
		e := exploration{cfg: cfg, limit: 1_000_000, hold: 100_000, eager: true}
		first, _, _ := strings.Cut(e.explore(), "\n")
		require.NotEmpty(t, first, "%s does not need: %s", cfg.name, rule)
		_, steps, _ := strings.Cut(first, ", after ")
		n := 0
		_, err := fmt.Sscanf(steps, "%d steps", &n)
		require.NoError(t, err, first)
		return n
	}
	require.Fail(t, "no such rule", rule)
	return 0
}
