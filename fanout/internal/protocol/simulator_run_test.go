// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSimulate plays random schedules. ATOLL_SEED plays one and tells it,
// ATOLL_RUNS plays as many as it says, from a seed that nobody chose.
func TestSimulate(t *testing.T) {
	if s := os.Getenv("ATOLL_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		tryOut(t, seed)
		return
	}
	runs, base := 10_000, uint64(0)
	if raceEnabled {
		runs = 1_000
	}
	if n, err := strconv.Atoi(os.Getenv("ATOLL_RUNS")); err == nil {
		runs, base = n, rand.Uint64()>>1
	}
	begun := time.Now()
	for i := range runs {
		tryOut(t, base+uint64(i))
	}
	took := time.Since(begun)
	said := fmt.Sprintf("%d schedules from seed %d, none failed, %.0f per second", runs, base, float64(runs)/took.Seconds())
	t.Log(said)
	writeSection(t, "exploration.md", "simulate", said+" (`make simulate RUNS="+strconv.Itoa(runs)+"`).\n")
}

// tryOut plays a seed. If it fails, it tells the shortest schedule that fails
// like it.
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
