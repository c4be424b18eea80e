// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// loopsFromStates lists the loops that TestStates starts in random states.
var loopsFromStates = []struct {
	name   string
	sample int // states in a default test run
	share  int // weight of its part of ATOLL_STATES
	begin  func(r *rand.Rand) beginning
}{
	{"syncer", 4, 5, syncerBeginning},
	{"splitter", 4, 3, splitterBeginning},
	{"autoscalers", 4, 3, scaledBeginning},
	{"placement", 4, 3, placementBeginning},
	{"clusterdaemonsets", 4, 2, daemonBeginning},
	{"claims", 4, 3, claimsBeginning},
	{"targets", 2, 1, targetsBeginning},
	{"accounts", 2, 3, accountsBeginning},
}

// beginning is a random state in which loops start.
type beginning struct {
	servers func() (map[string]perturb.Server, error) // without the objects that strokes create
	loops   []perturb.Loop
	strokes []stroke
	// holds checks the end state.
	holds func(ctx context.Context, w *world) error
	beats func(perturb.Point) bool
	quiet time.Duration
	// scaled reports that the loops set the replicas of the workloads that users apply.
	scaled bool
}

// stroke is a random event that changes the objects of a state. If the state does not allow the
// event, do returns errNoEffect or the error of the API server.
type stroke struct {
	kind string
	do   func(w *world) error
}

// statesFrom returns a func that makes a scenario of a group of loops from a seed. Strokes happen
// before the loops first run, while they are stopped, and while they run.
func statesFrom(begin func(*rand.Rand) beginning, tally *tally) func(seed uint64) perturb.Scenario {
	return func(seed uint64) perturb.Scenario {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it chooses test cases
		b := begin(random)
		w := newWorld(random)
		w.scaled = b.scaled
		several := func(n int) error {
			for range n {
				if err := w.strike(b.strokes[w.IntN(len(b.strokes))]); err != nil {
					return err
				}
			}
			return nil
		}
		never, ran, running := 2+w.IntN(9), w.IntN(7), w.IntN(4)
		if w.IntN(3) == 0 {
			ran = 0
		}
		return perturb.Scenario{
			Servers: func() (map[string]perturb.Server, error) {
				servers, err := b.servers()
				if err != nil {
					return nil, err
				}
				if err := w.reach(servers); err != nil {
					return nil, err
				}
				if err := several(never); err != nil || ran == 0 {
					return servers, err
				}
				w.run(b.loops)
				return servers, several(ran)
			},
			Loops: b.loops, Beats: b.beats, Quiet: b.quiet,
			Script: []perturb.Step{{Name: "strokes while the loops run", Do: func(context.Context, perturb.Access) error { return several(running) }}},
			Holds: func(ctx context.Context, _ perturb.Access) error {
				tally.add(w.kinds)
				return b.holds(ctx, w)
			},
		}
	}
}

// tally counts the strokes of many states.
type tally struct {
	mu    sync.Mutex
	kinds map[string]int
}

func (t *tally) add(kinds map[string]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, n := range kinds {
		t.kinds[kind] += n
	}
}

// String lists the kinds, the most frequent first.
func (t *tally) String() string {
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(t.kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.kinds[b], t.kinds[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, t.kinds[kind]))
	}
	return strings.Join(parts, ", ")
}

// numberFrom returns the positive number in the environment variable name. If the variable is
// empty, it returns otherwise.
func numberFrom(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "%s is a number", name)
	require.Positive(t, n, name)
	return n
}

// The loops start in random states. They come to rest in a state that their documentation allows,
// and then write nothing. ATOLL_STATES=N runs N states, ATOLL_SEED=N starts at that seed. To run a
// failed state again, set its seed and ATOLL_STATES=1, and select its subtest.
func TestStates(t *testing.T) {
	shares := 0
	for _, l := range loopsFromStates {
		shares += l.share
	}
	first := numberFrom(t, "ATOLL_SEED", 1)
	wanted := numberFrom(t, "ATOLL_STATES", shares)
	rows := []string{"| loops | states | most writes of one state | random requests that had an effect, by kind |\n|---|---|---|---|\n"}
	for _, l := range loopsFromStates {
		t.Run(l.name, func(t *testing.T) {
			n := l.sample
			if os.Getenv("ATOLL_STATES") != "" {
				n = (wanted*l.share + shares - 1) / shares
			}
			began, tally := time.Now(), &tally{kinds: map[string]int{}}
			report := perturb.Settle(t, uint64(first), n, statesFrom(l.begin, tally))
			for _, f := range report.Failures {
				t.Errorf("ATOLL_SEED=%d ATOLL_STATES=1 go test -run '^TestStates$/^%s$' ./internal/plans: %v", f.Seed, l.name, f.Err)
			}
			t.Logf("%d states from seed %d, %d writes, at most %d in one, %s: %s", report.Runs, first, report.Writes, report.MostWrites, time.Since(began).Round(time.Second/10), tally)
			rows = append(rows, fmt.Sprintf("| %s | %d | %d | %s |\n", l.name, report.Runs, report.MostWrites, tally))
		})
	}
	if !t.Failed() {
		docpage.Section(t, "states.md", "states", strings.Join(rows, ""))
	}
}
