// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// TestSimulate plays random schedules without a lost or restored peer. With ATOLL_SEED it plays the
// schedule of one seed, of any kind, and prints the schedule if it fails. ATOLL_RUNS sets the
// number of schedules and makes the first seed random.
func TestSimulate(t *testing.T) {
	if s := os.Getenv("ATOLL_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		tryOut(t, seed)
		return
	}
	said := playMany(t, 10_000, ordinary)
	docpage.Section(t, "exploration.md", "simulate", said+" (`make simulate`).\n")
}

// TestSimulateLosses plays random schedules in which a peer is lost, removed by force, and
// may rejoin. Only schedules in which the loss happens count.
func TestSimulateLosses(t *testing.T) {
	said := playMany(t, 1_000, withLoss)
	docpage.Section(t, "exploration.md", "losses", said+" (`make simulate`).\n")
}

// TestSimulateRestores plays random schedules in which a peer is restored from a backup.
// Only schedules in which the restore happens count.
func TestSimulateRestores(t *testing.T) {
	said := playMany(t, 1_000, withRestore)
	docpage.Section(t, "exploration.md", "restores", said+" (`make simulate`).\n")
}

// faultKind classifies a schedule by the fault of a peer in it.
type faultKind int

const (
	ordinary faultKind = iota
	withLoss
	withRestore
)

func (cfg *config) faultKind() faultKind {
	switch {
	case cfg.loss.peer != "":
		return withLoss
	case cfg.restored != "":
		return withRestore
	}
	return ordinary
}

// counts reports whether a schedule of kind s with these events counts as played. A schedule with a
// loss or a restore counts only if the loss or the restore happened.
func (s faultKind) counts(events []event) bool {
	var fault kind
	switch s {
	case withLoss:
		fault = actLose
	case withRestore:
		fault = actRestore
	default:
		return true
	}
	return slices.ContainsFunc(events, func(e event) bool { return e.kind == fault })
}

// failure is a seed whose schedule failed, and the violation.
type failure struct {
	seed uint64
	what string
}

// playMany plays schedules of one kind, and returns a sentence about how many it played.
func playMany(t *testing.T, runs int, of faultKind) string {
	t.Helper()
	base := uint64(0)
	if testing.Short() {
		runs /= 10
	}
	if n, err := strconv.Atoi(os.Getenv("ATOLL_RUNS")); err == nil {
		runs, base = n, rand.Uint64()>>1
	}
	begun := time.Now()
	var next, played atomic.Uint64
	var failed atomic.Pointer[failure]
	next.Store(base)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for failed.Load() == nil && played.Load() < uint64(runs) {
				seed := next.Add(1) - 1
				if cfg, _ := drawn(seed); cfg.faultKind() != of {
					continue
				}
				what, s := play(seed)
				if what != "" {
					failed.Store(&failure{seed, what})
				}
				if of.counts(s.events) {
					played.Add(1)
				}
			}
		})
	}
	players.Wait()
	if f := failed.Load(); f != nil {
		tryOut(t, f.seed)
		t.Fatalf("ATOLL_SEED=%d: %s\nplayed again, the same seed does not fail: a schedule depends on more than its seed", f.seed, f.what)
	}
	took := time.Since(begun)
	said := fmt.Sprintf("%d schedules from seed %d, none failed, %.0f per second", runs, base, float64(runs)/took.Seconds())
	t.Log(said)
	return said
}

// tryOut plays a seed. If the schedule fails, tryOut fails the test with the shortest schedule that
// it finds with the same failure.
func tryOut(t *testing.T, seed uint64) {
	t.Helper()
	what, s := play(seed)
	if what == "" {
		return
	}
	short, as := s.shrink(what)
	t.Fatalf("ATOLL_SEED=%d: %s\nshrunk from %d to %d steps of %d operations in %d peers: %s\n%s",
		seed, what, len(s.events), len(short.events), len(short.cfg.plans), short.cfg.peers, as, short.String())
}
