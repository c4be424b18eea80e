// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// rule is a rule of Prometheus: an alert or a record.
type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (r rule) name() string { return r.Alert + r.Record }

// rules returns all rules, the records first, as the alerts read them.
func rules(t *testing.T) (records, alerts []rule) {
	t.Helper()
	paths, err := filepath.Glob("rules/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var file struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		}
		require.NoError(t, yaml.UnmarshalStrict(data, &file), path)
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerts = append(alerts, r)
				} else {
					records = append(records, r)
				}
			}
		}
	}
	require.NotEmpty(t, records)
	require.NotEmpty(t, alerts)
	return records, alerts
}

// panel is a panel of a dashboard, or a row.
type panel struct {
	Dashboard  string `json:"-"`
	Type       string
	Title      string
	Datasource struct{ Type, UID string }
	Targets    []struct{ Expr string }
}

// panels returns the panels of all dashboards, without rows.
func panels(t *testing.T) (all []panel) {
	t.Helper()
	paths, err := filepath.Glob("dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		var d struct {
			UID    string
			Panels []panel
		}
		require.NoError(t, json.Unmarshal(data, &d), path)
		require.Equal(t, d.UID+".json", filepath.Base(path))
		for _, p := range d.Panels {
			p.Dashboard = d.UID
			if p.Type != "row" {
				all = append(all, p)
			}
		}
	}
	return all
}

// parse returns an expression without the variables of Grafana.
func parse(t *testing.T, where, expr string) parser.Expr {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(resolve(expr))
	require.NoError(t, err, "%s: %s", where, expr)
	return e
}
