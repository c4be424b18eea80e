// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/stretchr/testify/require"
)

// TestGrafanaAcceptsDashboards reads each dashboard by the schema that Grafana publishes, with those of its panels and of
// queries of Prometheus. Unknown fields, missing fields and wrong types are errors.
func TestGrafanaAcceptsDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	paths, err := filepath.Glob("dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, readDashboard(data), path)
	}
	// A wrong dashboard is refused.
	data, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	for from, to := range map[string]string{
		`"graphTooltip": 1`: `"graphTooltip": "1"`, `"editable": true`: `"editible": true`, `"type": "timeseries",`: `"type": "timeseries", "color": 1,`,
		`"displayMode": "list"`: `"displayMode": 7`, `"legendFormat": `: `"legend": `,
	} {
		wrong := strings.Replace(string(data), from, to, 1)
		require.NotEqual(t, string(data), wrong, from)
		require.Error(t, readDashboard([]byte(wrong)), to)
	}
}

func readDashboard(data []byte) error {
	var d dashboard.Dashboard //nolint:staticcheck // Grafana 10 and later read this schema; the next one needs Grafana 12
	if err := d.UnmarshalJSONStrict(data); err != nil {
		if found, ok := errors.AsType[cog.BuildErrors](err); !ok || len(found) > 0 { // without errors it returns an empty list
			return err
		}
	}
	return d.Validate()
}
