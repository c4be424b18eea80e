// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/comparison.md has a date, compares the same projects in each table, and links each row about another project to
// a public source.
func TestComparison(t *testing.T) {
	text, err := os.ReadFile("docs/comparison.md")
	require.NoError(t, err)
	page := string(text)
	require.Regexp(t, `written on \d{4}-\d\d-\d\d`, page)
	projects := []string{"Karmada", "kcp", "Open Cluster Management", "KubeFleet", "multicluster-runtime and own code"}
	tables := strings.Count(page, "\n| project |")
	require.Positive(t, tables)
	require.Equal(t, tables, strings.Count(page, "\n| Atoll |"))
	for _, project := range projects {
		require.Equal(t, tables, strings.Count(page, "\n| "+project+" |"), "tables with a row about %s", project)
		require.Contains(t, page, "\n- **"+strings.TrimSuffix(project, " and own code")+"**: ", "when to use %s", project)
	}
	for row := range strings.Lines(page) {
		for _, project := range projects {
			if strings.HasPrefix(row, "| "+project+" |") {
				require.Contains(t, row, "](https://", "a row about %s needs a source", project)
			}
		}
	}
}
