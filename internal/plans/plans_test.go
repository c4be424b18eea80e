// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

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
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// scenarios lists all scenarios of TestPlans. `make plans` runs more than 10,000 plans: fewer for a
// scenario whose plans take longer.
var scenarios = []struct {
	name     string
	scenario func() perturb.Scenario
	sample   int // plans of one fault that run by default
	full     int // plans of one fault that `make plans` runs; zero means all
	pairs    int // plans of two faults that `make plans` runs
	most     int // limit of the writes of one run, including rejected writes
}{
	{"syncer-life", syncerLife, 10, 0, 300, 250},
	{"syncer-conditions", syncerConditions, 10, 0, 300, 250},
	{"syncer-shared", syncersShared, 10, 0, 100, 250},
	{"syncer-move", syncersMove, 10, 0, 700, 250},
	{"syncer-autoscaler", syncerAutoscaler, 10, 0, 100, 250},
	{"syncer-deleteUpstream", syncerDeleteUpstream, 10, 0, 800, 250},
	{"syncer-upsync", syncerUpsync, 10, 0, 500, 250},
	{"syncer-namespaces", syncerNamespaces, 10, 0, 800, 250},
	{"splitter-life", splitterLife, 10, 500, 100, 250},
	{"splitter-drain", splitterDrain, 10, 300, 0, 250},
	{"splitter-moves", splitterMoves, 8, 120, 0, oneASecond},
	{"splitter-scaled", splitterScaled, 8, 120, 0, oneASecond},
	{"placement-life", placementLife, 10, 0, 500, 250},
	{"clusterdaemonset-life", clusterDaemonSetLife, 10, 0, 300, 250},
	{"together", together, 10, 100, 0, 1000},
	{"claims", claims, 30, 0, 400, 250},
	{"serviceclusters", serviceClusters, 15, 200, 0, oneASecond},
	{"contested", contested, 15, 0, 400, 250},
	{"central", centralPlane, 25, 150, 0, oneASecond},
	{"accounts", accounts, 6, 60, 0, oneASecond},
	{"sweeps", sweeps, 15, 150, 0, oneASecond},
	{"targets", targetsOfClusters, 20, 200, 0, 250},
	{"fleet", fleetOfClusters, 8, 40, 0, oneASecond},
}

// oneASecond allows a loop to retry a write every second while a watch is late for ten minutes.
const oneASecond = 700

// size returns how many plans of one fault and of two faults are run. Zero plans of one fault means
// all of them. ATOLL_PLANS is a number of plans of one fault; "all"; "full" for the plans of `make
// plans`; or empty for the sample, which is one plan with -short.
func size(t *testing.T, sample, full, pairs int) (singles, doubles int) {
	t.Helper()
	switch text := os.Getenv("ATOLL_PLANS"); text {
	case "":
		if testing.Short() {
			return 1, 0
		}
		return sample, 0
	case "all":
		return 0, 0
	case "full":
		return full, pairs
	default:
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "ATOLL_PLANS is a number of plans, full or all")
		return n, 0
	}
}

// leftOut selects the faults for which no plans run, by scenario. The comment of each entry gives
// the reason.
var leftOut = map[string]func(perturb.Fault) bool{
	// An Account in use is not deleted, and an Account that is being deleted cannot be created
	// again: a person decides.
	"sweeps": func(f perturb.Fault) bool {
		return (f.Kind == perturb.DeleteBefore || f.Kind == perturb.RemakeBefore) && f.Of.Resource == "accounts.catalog.kubecarrier.io"
	},
}

// tested reports whether a plan disturbs a loop under test, rather than a loop that plays the
// controllers of a cluster. Of periodic writes it accepts only faults at the first few, since
// faults at later ones are equivalent.
func tested(p perturb.Plan) bool {
	const beats = 6
	for _, f := range p {
		if strings.HasPrefix(f.At.Loop, clusterOf) || (notes(f.At) || heartbeats(f.At)) && f.At.N > beats {
			return false
		}
	}
	return true
}

// Each run with the faults of a plan ends in the same state as the undisturbed run, and the loops
// then stop writing. No run has more writes than the limit of its scenario. ATOLL_SEED selects
// other plans for the sample.
func TestPlans(t *testing.T) {
	seed := uint64(numberFrom(t, "ATOLL_SEED", 1))
	var table strings.Builder
	table.WriteString("| scenario | writes | events | plans of one fault | of these run | of two faults run | not reached | most writes |\n|---|---|---|---|---|---|---|---|\n")
	runs := 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			began := time.Now()
			singles, pairs := size(t, s.sample, s.full, s.pairs)
			scenario := s.scenario()
			if testing.Short() {
				scenario.Rest = 10 * time.Minute
			}
			report := perturb.Find(t, scenario, perturb.Options{Plans: singles, Pairs: pairs, Seed: seed, Only: func(p perturb.Plan) bool {
				left := leftOut[s.name]
				return tested(p) && (left == nil || !slices.ContainsFunc(p, left))
			}})
			t.Logf("%s; %s", report, time.Since(began).Round(time.Second/10))
			most := s.most
			if pairs > 0 {
				most *= 4 // two watches may be late, one after the other, for two objects
			}
			require.LessOrEqual(t, report.MostWrites, most, "writes of %s", report.Busiest)
			for _, f := range report.Failures {
				t.Errorf("%s: %v\n%s", f.Plan, f.Err, f.Plan.Source())
			}
			runs += report.Runs
			fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", s.name, report.Writes, report.Events, report.Plans,
				report.Runs-pairs, pairs, report.Missed, report.MostWrites)
		})
	}
	if !t.Failed() {
		docpage.Section(t, "plans.md", "plans", fmt.Sprintf("%d plans ran, of %d scenarios.\n\n%s", runs, len(scenarios), &table))
	}
}
