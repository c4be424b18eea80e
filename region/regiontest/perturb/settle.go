// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"cmp"
	"slices"
	"sync"
	"testing"
)

// Settle runs one scenario for each of n seeds, starting with first, without faults. It fails t if a run does not come
// to rest, or if its Holds fails: the loops must converge from any initial objects. Each run has a bubble of
// testing/synctest, so t must not be in one. It blocks. The Report has no plans and no events. Its Failures have seeds,
// the lowest first; Settle with such a seed as first and with n = 1 repeats the run.
func Settle(t *testing.T, first uint64, n int, scenario func(seed uint64) Scenario) Report {
	t.Helper()
	report := settle(t, first, n, scenario)
	if len(report.Failures) > 0 {
		f := report.Failures[0]
		t.Errorf("%d of %d seeds went wrong; the first: %d: %v", len(report.Failures), report.Runs, f.Seed, f.Err)
	}
	return report
}

func settle(t *testing.T, first uint64, n int, scenario func(seed uint64) Scenario) Report {
	t.Helper()
	unbrake()
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	var mu sync.Mutex
	var report Report
	each(t, "seeds", seeds, Options{}.workers(), func(t *testing.T, seed uint64) {
		s := scenario(seed)
		result, err := play(t, &s, nil, false)
		mu.Lock()
		defer mu.Unlock()
		report.Runs++
		report.Writes += len(result.writes)
		report.MostWrites = max(report.MostWrites, len(result.writes))
		if err != nil {
			report.Failures = append(report.Failures, Failure{Seed: seed, Err: err})
		}
	})
	slices.SortFunc(report.Failures, func(a, b Failure) int { return cmp.Compare(a.Seed, b.Seed) })
	return report
}
