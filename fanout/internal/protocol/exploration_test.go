// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExplore(t *testing.T) {
	for _, cfg := range smallConfigs() {
		t.Run(cfg.name, func(t *testing.T) { explore(t, cfg) })
	}
}

// TestExploreDeep takes minutes and gigabytes; ATOLL_EXPLORE=deep runs it.
// `make explore` lets it write its figures down.
func TestExploreDeep(t *testing.T) {
	if os.Getenv("ATOLL_EXPLORE") != "deep" {
		t.Skip("ATOLL_EXPLORE is not deep: these configurations take minutes")
	}
	// Collecting garbage is a third of the work otherwise.
	percent, limit := debug.SetGCPercent(300), debug.SetMemoryLimit(3<<30)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	var rows []figures
	for _, cfg := range slices.Concat(smallConfigs(), deepConfigs()) {
		t.Run(cfg.name, func(t *testing.T) {
			rows = append(rows, explore(t, cfg))
			debug.FreeOSMemory()
		})
	}
	if !t.Failed() {
		writeSection(t, "exploration.md", "explore", table(rows))
	}
}

// figures are what an exploration came to.
type figures struct {
	cfg                                config
	states, transitions, resting, lost int
	took                               time.Duration
}

// quiet is the share of states from which one is reached in which all is done.
func (f figures) quiet() string {
	if f.lost == 0 {
		return "100 %"
	}
	return fmt.Sprintf("%.4f %%", 100*float64(f.states-f.lost)/float64(f.states))
}

func explore(t *testing.T, cfg config) figures {
	t.Helper()
	e := exploration{cfg: cfg, every: 32, graph: &graph{}}
	begun := time.Now()
	if trace := e.explore(); trace != "" {
		t.Fatal(trace)
	}
	require.False(t, e.cut, "the exploration was cut off at %d states", e.limit)
	n, first := e.graph.stuck()
	f := figures{cfg, e.states, e.transitions, e.quiet, n, time.Since(begun)}
	t.Logf("%-45s %8d states %9d transitions %6d at rest, %s quiet, %v",
		cfg.name, f.states, f.transitions, f.resting, f.quiet(), f.took.Round(time.Millisecond))
	if n > 0 {
		t.Fatalf("%d states have no way to rest; %s", n, e.trace(first, "L1: no way to rest"))
	}
	return f
}

func table(rows []figures) string {
	var b strings.Builder
	var sum figures
	b.WriteString("| configuration | peers | states | transitions | at rest | quiet | seconds |\n|---|---|---|---|---|---|---|\n")
	for _, f := range rows {
		kind := "once"
		if f.cfg.mode == Everywhere {
			kind = "everywhere"
		}
		fmt.Fprintf(&b, "| %s: %s | %d | %d | %d | %d | %s | %.1f |\n",
			kind, f.cfg.name, f.cfg.peers, f.states, f.transitions, f.resting, f.quiet(), f.took.Seconds())
		sum.states += f.states
		sum.transitions += f.transitions
		sum.resting += f.resting
		sum.lost += f.lost
		sum.took += f.took
	}
	fmt.Fprintf(&b, "| **all %d** | | **%d** | **%d** | **%d** | **%s** | **%.0f** |\n",
		len(rows), sum.states, sum.transitions, sum.resting, sum.quiet(), sum.took.Seconds())
	return b.String()
}
