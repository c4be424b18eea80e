// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// step is the time between two samples, and between two evaluations of a rule.
const step = time.Minute

// memory holds series for the engine, by their labels.
type memory map[string]*storage.SeriesEntry

// load adds series in the notation of promtool, such as `up{job="a"} 0x10 1+1x5`. A series replaces one with the same labels.
func (m memory) load(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		lset, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(line)
		require.NoError(t, err, line)
		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{int64(i) * step.Milliseconds(), v.Value})
			}
		}
		m[lset.String()] = storage.NewListSeries(lset, samples)
	}
}

// record evaluates records and adds their series.
func (m memory) record(t *testing.T, records []rule, end time.Duration) {
	t.Helper()
	for _, r := range records {
		for _, s := range m.evaluate(t, r.Expr, end) {
			lset := labels.NewBuilder(s.Metric).Set(model.MetricNameLabel, r.Record).Labels()
			var samples []chunks.Sample
			for _, p := range s.Floats {
				samples = append(samples, sample{p.T, p.F})
			}
			m[lset.String()] = storage.NewListSeries(lset, samples)
		}
	}
}

// evaluate evaluates an expression at each step until end.
func (m memory) evaluate(t *testing.T, expr string, end time.Duration) promql.Matrix {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer func() { require.NoError(t, engine.Close()) }()
	query, err := engine.NewRangeQuery(t.Context(), m, nil, expr, time.UnixMilli(0), time.UnixMilli(end.Milliseconds()), step)
	require.NoError(t, err, expr)
	defer query.Close()
	result := query.Exec(t.Context())
	require.NoError(t, result.Err, expr)
	matrix, err := result.Matrix()
	require.NoError(t, err)
	copied := make(promql.Matrix, len(matrix)) // Close reuses the points
	for i, s := range matrix {
		copied[i] = promql.Series{Metric: s.Metric, Floats: slices.Clone(s.Floats)}
	}
	return copied
}

// Querier implements storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return querier{&storage.MockQuerier{}, m}, nil
}

type querier struct {
	*storage.MockQuerier

	memory memory
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &seriesSet{at: -1}
	for _, s := range q.memory {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Lset.Get(m.Name)) }) {
			set.all = append(set.all, s)
		}
	}
	slices.SortFunc(set.all, func(a, b *storage.SeriesEntry) int { return labels.Compare(a.Lset, b.Lset) })
	return set
}

type seriesSet struct {
	all []*storage.SeriesEntry
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                    { return s.t }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.f }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
