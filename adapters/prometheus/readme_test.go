// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// TestReadme compares the table of README.md with the metrics. ATOLL_GOLDEN=write writes the table.
func TestReadme(t *testing.T) {
	const begin, end = "<!-- metrics: written by the tests -->\n", "<!-- end of metrics -->\n"
	ring := regiontest.NewRing("eu")
	defer ring.Close()
	m, registry := newMetrics(t, Options{Directory: func() region.Directory { return expiring{ring} }})
	for _, c := range cases() {
		c.fire(t, m, true)
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	var table strings.Builder
	table.WriteString(begin + "| metric | type | meaning |\n|---|---|---|\n")
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		name := f.GetName()
		if len(labels) > 0 {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", name, strings.ToLower(f.GetType().String()), f.GetHelp())
	}
	table.WriteString(end)

	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + table.String() + after
	if os.Getenv("ATOLL_GOLDEN") == "write" {
		require.NoError(t, os.WriteFile("README.md", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run the test with ATOLL_GOLDEN=write")
}
