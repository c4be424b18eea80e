// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"
)

// All is well for six hours, then one thing is wrong for two. In its first hour Prometheus takes the counts that it finds
// for new ones.
const (
	begin = 60 * step
	well  = 360 * step
	end   = 480 * step
)

// TestAlerts requires that no alert is pending while all is well, and that each alert fires when its fault lasts.
func TestAlerts(t *testing.T) {
	records, alerts := rules(t)
	healthy := load(t, healthy...)
	clone := maps.Clone(healthy)
	clone.record(t, records, end)
	for _, r := range alerts {
		t.Run(r.Alert, func(t *testing.T) {
			for _, s := range clone.evaluate(t, r.Expr, end) {
				require.Less(t, s.Floats[len(s.Floats)-1].T, begin.Milliseconds(), "all is well, but for %s it is pending", s.Metric)
			}
			require.NotEmpty(t, faults[r.Alert], "a fault that the alert reports")
			faulty := maps.Clone(healthy)
			maps.Copy(faulty, load(t, faults[r.Alert]...))
			faulty.record(t, slices.DeleteFunc(slices.Clone(records), func(record rule) bool { return !strings.Contains(r.Expr, record.Record) }), end)
			fires := false
			for _, s := range faulty.evaluate(t, r.Expr, end) {
				fires = requireFires(t, r, s) || fires
			}
			require.True(t, fires, "it is pending for %s", r.For)
		})
	}
	require.Len(t, faults, len(alerts))
}

// load returns series, with the times in which all is well.
func load(t *testing.T, lines ...string) memory {
	t.Helper()
	m := memory{}
	for _, line := range lines {
		m.load(t, strings.NewReplacer("xALL", "x480", "xWELL", "x360").Replace(line))
	}
	return m
}

var label = regexp.MustCompile(`\$labels\.([a-z_]+)`)

// requireFires reports whether an alert is pending for as long as it waits, and not before the fault. It requires that the
// alert has the labels of its annotations.
func requireFires(t *testing.T, r rule, s promql.Series) bool {
	t.Helper()
	wait, err := time.ParseDuration(r.For)
	require.NoError(t, err)
	active := time.Duration(0)
	for i, p := range s.Floats {
		switch at := time.Duration(p.T) * time.Millisecond; {
		case at < begin:
			continue
		case i > 0 && p.T-s.Floats[i-1].T == step.Milliseconds():
			active += step
		default:
			active = 0
		}
		require.GreaterOrEqual(t, p.T, well.Milliseconds(), "before the fault")
	}
	for _, l := range label.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
		require.True(t, s.Metric.Has(l[1]), "an annotation has the label %s", l[1])
	}
	return active >= wait
}
