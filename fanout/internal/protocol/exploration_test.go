// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// TestExplore explores all states of the small configurations; with -short, the first thousand
// of each.
func TestExplore(t *testing.T) {
	enough := 0
	if testing.Short() {
		enough = 1000
	}
	for _, cfg := range smallConfigs() {
		t.Run(cfg.name, func(t *testing.T) { explore(t, cfg, enough) })
	}
}

// TestExploreDeep explores the small and the deep configurations, which takes an hour and
// gigabytes. ATOLL_EXPLORE=deep runs it, and ATOLL_STATES sets how many states of a configuration
// are enough. `make explore` also writes the figures to docs/evidence/exploration.md.
func TestExploreDeep(t *testing.T) {
	if os.Getenv("ATOLL_EXPLORE") != "deep" {
		t.Skip("ATOLL_EXPLORE is not deep: these configurations take an hour")
	}
	enough := 250_000
	if n, err := strconv.Atoi(os.Getenv("ATOLL_STATES")); err == nil {
		enough = n
	}
	all := slices.Concat(smallConfigs(), deepConfigs())
	rows := make([]figures, len(all))
	t.Run("configurations", func(t *testing.T) {
		for i, cfg := range all {
			t.Run(cfg.name, func(t *testing.T) {
				t.Parallel()
				rows[i] = explore(t, cfg, max(enough, cfg.states))
			})
		}
	})
	if !t.Failed() {
		docpage.Section(t, "exploration.md", "explore", table(rows))
	}
}

// figures are the results of an exploration.
type figures struct {
	cfg                                config
	states, transitions, resting, lost int
	depth                              int // depth of an exploration that was cut; 0: it was complete
	took                               time.Duration
}

// far returns how far the exploration went.
func (f figures) far() string {
	if f.depth == 0 {
		return "all"
	}
	return fmt.Sprintf("%d steps", f.depth)
}

// quiet returns the share of states from which a state is reachable in which all work is done.
func (f figures) quiet() string {
	if f.depth > 0 {
		return ""
	}
	if f.lost == 0 {
		return "100 %"
	}
	return fmt.Sprintf("%.4f %%", 100*float64(f.states-f.lost)/float64(f.states))
}

// explore explores all interleavings of cfg, or stops after enough states if enough is not 0.
func explore(t *testing.T, cfg config, enough int) figures {
	t.Helper()
	e := exploration{cfg: cfg, every: 32, limit: enough, graph: &graph{}}
	begun := time.Now()
	if trace := e.explore(); trace != "" {
		t.Fatal(trace)
	}
	f := figures{cfg: cfg, states: e.states, transitions: e.transitions, resting: e.quiet}
	n, first := 0, int32(0)
	if e.cut {
		require.NotZero(t, enough, "the exploration was cut off at %d states, after all schedules of %d steps", e.limit, e.depth)
		f.depth = e.depth
	} else {
		n, first = e.graph.stuck()
	}
	f.lost, f.took = n, time.Since(begun)
	t.Logf("%-45s %8d states %9d transitions %6d at rest, %s, %s quiet, %v",
		cfg.name, f.states, f.transitions, f.resting, f.far(), f.quiet(), f.took.Round(time.Millisecond))
	if n > 0 {
		t.Fatalf("%d states have no way to rest; %s", n, e.trace(first, "L1: no way to rest"))
	}
	return f
}

func table(rows []figures) string {
	var b strings.Builder
	var sum figures
	b.WriteString("| configuration | peers | schedules | states | transitions | at rest | quiet | seconds |\n|---|---|---|---|---|---|---|---|\n")
	for _, f := range rows {
		kind := "once"
		if f.cfg.mode == Everywhere {
			kind = "everywhere"
		}
		fmt.Fprintf(&b, "| %s: %s | %d | %s | %d | %d | %d | %s | %.1f |\n",
			kind, f.cfg.name, f.cfg.peers, f.far(), f.states, f.transitions, f.resting, f.quiet(), f.took.Seconds())
		sum.states += f.states
		sum.transitions += f.transitions
		sum.resting += f.resting
		sum.lost += f.lost
		sum.took += f.took
	}
	fmt.Fprintf(&b, "| **all %d** | | | **%d** | **%d** | **%d** | **%s** | **%.0f** |\n",
		len(rows), sum.states, sum.transitions, sum.resting, sum.quiet(), sum.took.Seconds())
	return b.String()
}
