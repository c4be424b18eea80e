// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// chosen returns the report of Find with opts, and the number of plans of each kind that opts.Only selects.
func chosen(t *testing.T, opts perturb.Options) (perturb.Report, map[perturb.Kind]int) {
	t.Helper()
	var mu sync.Mutex
	kinds := map[perturb.Kind]int{}
	only := opts.Only
	opts.Only = func(p perturb.Plan) bool {
		if only != nil && !only(p) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		kinds[p[0].Kind]++
		return true
	}
	return perturb.Find(t, scenario(copier{}), opts), kinds
}

func TestPlansBoundsTheRuns(t *testing.T) {
	report, kinds := chosen(t, perturb.Options{Plans: 3, Workers: 1})
	require.Equal(t, 3, report.Runs)
	require.Greater(t, report.Plans, 3)
	require.Zero(t, kinds[perturb.RestoreUnder])
}

func TestOnlyLeavesPlansOut(t *testing.T) {
	report, kinds := chosen(t, perturb.Options{RestoreUnder: true, Plans: 4, Only: func(p perturb.Plan) bool { return p[0].Kind == perturb.RestoreUnder }})
	require.Equal(t, kinds[perturb.RestoreUnder], report.Plans)
	require.NotZero(t, report.Plans)
	require.Equal(t, 4, report.Runs)
}

// Find runs the same plans for the same seed, and other plans for another seed. The copier has a mistake, because Find
// names only the plans that fail.
func TestSeedChoosesPlans(t *testing.T) {
	failing := func(seed uint64) []string {
		var plans []string
		for _, f := range perturb.Find(t, scenario(copier{countsEvents: true}), perturb.Options{Plans: 20, Seed: seed}).Failures {
			plans = append(plans, f.Plan.String())
		}
		return plans
	}
	first := failing(0)
	require.NotEmpty(t, first)
	require.Equal(t, first, failing(1), "1 is the default")
	require.NotEqual(t, first, failing(2))
}

// With Options.Real, Find runs a sample of the plans in real time, and the right copier passes.
func TestRealTime(t *testing.T) {
	s := scenario(copier{})
	s.Quiet, s.Rest, s.Limit = 50*time.Millisecond, 100*time.Millisecond, 10*time.Second
	s.Loops[0].Restart = time.Millisecond
	report := perturb.Find(t, s, perturb.Options{Real: true, Plans: 12})
	require.Empty(t, report.Failures)
	require.Equal(t, 12, report.Runs)
}
