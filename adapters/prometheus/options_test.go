// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

func TestBuckets(t *testing.T) {
	const commits = "atoll_wal_commit_duration_seconds"
	for name, c := range map[string]struct {
		buckets map[string][]float64
		err     string // part of the error; empty: none
	}{
		"none":         {nil, ""},
		"valid":        {map[string][]float64{commits: {0.001, 1}}, ""},
		"negative":     {map[string][]float64{commits: {-1, 1}}, ""},
		"with +Inf":    {map[string][]float64{commits: {1, math.Inf(1)}}, ""},
		"empty":        {map[string][]float64{commits: {}}, `Options.Buckets["atoll_wal_commit_duration_seconds"] is empty`},
		"falling":      {map[string][]float64{commits: {1, 0.5}}, `Options.Buckets["atoll_wal_commit_duration_seconds"][1] is 0.5`},
		"equal":        {map[string][]float64{commits: {1, 1}}, `Options.Buckets["atoll_wal_commit_duration_seconds"][1] is 1`},
		"no number":    {map[string][]float64{commits: {math.NaN()}}, `Options.Buckets["atoll_wal_commit_duration_seconds"][0] is NaN`},
		"no histogram": {map[string][]float64{"atoll_wal_calls_total": {1}}, `Options.Buckets["atoll_wal_calls_total"]: no histogram has this name`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Buckets: c.buckets})
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
		})
	}
}

func TestBucketsReplaceTheDefault(t *testing.T) {
	bounds := []float64{1, 2}
	m, registry := newMetrics(t, Options{Buckets: map[string][]float64{"atoll_wal_commit_duration_seconds": bounds}})
	bounds[0] = 5 // New has a copy
	m.WAL(nil).Committed(wal.CommitEvent{Elapsed: 1500 * time.Millisecond})
	got := exposition(t, registry, "atoll_wal_commit_duration_seconds")
	require.Contains(t, got, `_bucket{outcome="success",le="1"} 0`)
	require.Contains(t, got, `_bucket{outcome="success",le="2"} 1`)
}
