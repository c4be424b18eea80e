// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// resolve replaces the variables of Grafana.
func resolve(expr string) string { return strings.ReplaceAll(expr, "$__rate_interval", "5m") }

// lists are the pages whose tables list metrics with their labels. A test of adapters/prometheus writes the first one,
// which has types, and a test of each program compares the others with it.
var lists = []string{"../../adapters/prometheus/README.md", "../../cmd/atoll-gateway/README.md", "../../cmd/atoll-manager/README.md"}

// target are the labels that a scrape adds.
var target = []string{"instance", "job", "namespace", "pod"}

// series maps the names of series to their labels.
type series map[string][]string

// known returns the series of all metrics.
func known(t *testing.T) series {
	t.Helper()
	s := series{}
	row := regexp.MustCompile("(?m)^\\| `(atoll_[a-z_]+)(?:\\{([a-z_,]+)\\})?` \\| (.*) \\|$")
	for _, path := range lists {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		rows := row.FindAllStringSubmatch(string(page), -1)
		require.NotEmpty(t, rows, path)
		for _, r := range rows {
			name, of := r[1], append(strings.Split(r[2], ","), target...)
			switch _, histogram := s[name+"_count"]; {
			case histogram: // a later page names a metric of the first one
			case strings.HasPrefix(r[3], "histogram |"), strings.HasSuffix(name, "_duration_seconds"):
				s[name+"_bucket"], s[name+"_count"], s[name+"_sum"] = append(slices.Clone(of), "le"), of, of
			default:
				s[name] = of
			}
		}
	}
	return s
}

// check requires that an expression names only series in s, and labels that they have. It returns the labels of the
// result.
func (s series) check(t *testing.T, where string, e parser.Expr) {
	t.Helper()
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			of, ok := s[n.Name]
			require.True(t, ok, "%s: no program has the metric %s", where, n.Name)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel {
					require.Contains(t, of, m.Name, "%s: a label of %s", where, n.Name)
				}
			}
		case *parser.AggregateExpr:
			for _, of := range s.of(n.Expr) {
				for _, by := range n.Grouping {
					require.Contains(t, of, by, "%s: a label in %s", where, n)
				}
			}
		}
		return nil
	})
}

// of returns the labels of each series that an expression names.
func (s series) of(e parser.Expr) (all [][]string) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			all = append(all, s[v.Name])
		}
		return nil
	})
	return all
}

// grouping returns the labels by which the expression of a record groups.
func grouping(e parser.Expr) (by []string) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok && by == nil {
			by = slices.DeleteFunc(slices.Clone(a.Grouping), func(l string) bool { return l == "le" })
		}
		return nil
	})
	return by
}

// TestNames requires that each metric, label and record of rules and dashboards exists.
func TestNames(t *testing.T) {
	s := known(t)
	records, alerts := rules(t)
	for _, r := range records {
		e := parse(t, r.Record, r.Expr)
		s.check(t, r.Record, e)
		s[r.Record] = grouping(e)
	}
	for _, r := range alerts {
		s.check(t, r.Alert, parse(t, r.Alert, r.Expr))
	}
	for _, p := range panels(t) {
		where := p.Dashboard + ", " + p.Title
		require.Equal(t, "prometheus", p.Datasource.Type, where)
		require.Equal(t, "${datasource}", p.Datasource.UID, where)
		require.NotEmpty(t, p.Targets, where)
		for _, q := range p.Targets {
			s.check(t, where, parse(t, where, q.Expr))
		}
	}
}

// sources are the files that declare the values of labels.
var sources = []string{
	"../../adapters/prometheus/label.go", "../../adapters/prometheus/cause.go", "../../adapters/prometheus/join.go", "../../adapters/prometheus/fanout.go",
	"../../fanout/operation.go", "../../fanout/internal/protocol/command.go", "../../router/aggregate/outcome.go", "../../router/aggregate/api.go",
	"../../adapters/prometheus/router.go",
}

// TestValues requires that the code has each value by which rules and dashboards select series.
func TestValues(t *testing.T) {
	var code strings.Builder
	for _, path := range sources {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		code.Write(data)
	}
	records, alerts := rules(t)
	exprs := map[string]string{}
	for _, r := range append(records, alerts...) {
		exprs[r.name()] = r.Expr
	}
	for _, p := range panels(t) {
		for _, q := range p.Targets {
			exprs[p.Title+": "+q.Expr] = q.Expr
		}
	}
	status := regexp.MustCompile(`^[1-5](\d\d|\.\.)$`)
	found := 0
	for where, expr := range exprs {
		for _, selector := range parser.ExtractSelectors(parse(t, where, expr)) {
			for _, m := range selector {
				for _, value := range strings.Split(m.Value, "|") {
					if m.Name == model.MetricNameLabel || m.Name == "code" && status.MatchString(value) {
						continue
					}
					found++
					require.Contains(t, code.String(), `"`+value+`"`, "%s: %s", where, m)
				}
			}
		}
	}
	require.Greater(t, found, 30)
}
