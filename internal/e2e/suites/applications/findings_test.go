// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// choose returns the applications to test, and whether these are all. ATOLL_APPLICATIONS_THIRD is the number of the
// third to test: 0, 1 or 2.
func choose(t *testing.T, applications []application) (chosen []application, all bool) {
	t.Helper()
	third := os.Getenv("ATOLL_APPLICATIONS_THIRD")
	if third == "" {
		return applications, true
	}
	n, err := strconv.Atoi(third)
	require.NoError(t, err, "ATOLL_APPLICATIONS_THIRD")
	require.Contains(t, []int{0, 1, 2}, n, "ATOLL_APPLICATIONS_THIRD")
	for i, a := range applications {
		if i%3 == n {
			chosen = append(chosen, a)
		}
	}
	return chosen, false
}

// findings are the results of a run.
type findings struct {
	counts  map[string]*count
	rows    []string // of the table of objects that differ
	unknown []string // differences that are no known exceptions
}

// count counts the objects of an application.
type count struct{ objects, unchanged, statuses int }

func newFindings() *findings {
	return &findings{counts: map[string]*count{}}
}

func (f *findings) add(i item, c comparison, reports bool) {
	n := f.counts[i.application]
	if n == nil {
		n = &count{}
		f.counts[i.application] = n
	}
	n.objects++
	if reports {
		n.statuses++
	}
	if len(c.changed) == 0 {
		n.unchanged++
	}
	for _, path := range c.changed {
		reason := why(i.written.GetKind(), path)
		if path == "the object" {
			reason = staysUp(i.written)
		}
		if reason == "" {
			f.unknown = append(f.unknown, fmt.Sprintf("%s: %s: %s", i.application, i, path))
		}
		f.rows = append(f.rows, fmt.Sprintf("| %s | %s | `%s` | %s |", i.application, i, path, reason))
	}
	for _, path := range c.assigned {
		if why(i.written.GetKind(), path) == "" {
			f.unknown = append(f.unknown, fmt.Sprintf("%s: %s: %s, which its author has not set", i.application, i, path))
		}
	}
}

// check fails the test if fewer than 95 % of the objects are unchanged, if a change has no known reason, or if the page
// does not have these findings. With ATOLL_DOCS it writes the page, if all applications were tested.
func (f *findings) check(t *testing.T, all bool, covered func() coverage) {
	t.Helper()
	require.Empty(t, f.unknown, "%s", strings.Join(f.unknown, "\n"))
	var total count
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		n := f.counts[name]
		total.objects, total.unchanged, total.statuses = total.objects+n.objects, total.unchanged+n.unchanged, total.statuses+n.statuses
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d |", name, n.objects, n.unchanged, n.statuses))
	}
	least := 95
	if !all {
		least = 0 // the share is that of all applications; each object that changes must be in the page's list nevertheless
	}
	require.GreaterOrEqual(t, 100*total.unchanged, least*total.objects, "%d of %d objects are unchanged", total.unchanged, total.objects)
	if all && os.Getenv("ATOLL_DOCS") != "" {
		docpage.Section(t, "applications.md", "applications", strings.Join([]string{
			fmt.Sprintf("%d applications with %d objects: %d objects (%.1f %%) arrived unchanged. The status of %d objects came back.", len(rows), total.objects,
				total.unchanged, 100*float64(total.unchanged)/float64(total.objects), total.statuses),
			"\n| application | objects | unchanged | statuses |\n|---|---|---|---|\n" + strings.Join(rows, "\n"),
			"\n### Objects and fields that do not go down as written\n\n| application | object | field | reason |\n|---|---|---|---|\n" + strings.Join(f.rows, "\n"),
			"\n### Known differences\n\nThe objects and fields that may differ between the two sides. Most authors do not set these fields; for those who do, the table above has the object.\n\n" +
				"| kind | field | reason |\n|---|---|---|\n" + strings.Join(knownDifferences(), "\n"),
			"\n### Fields that the corpus sets\n\nOf the fields in the schemas of the API server, without those of every object and the status. Pod templates count once for all kinds.\n\n" +
				"| kind | objects | fields set | fields defined |\n|---|---|---|---|\n" + strings.Join(covered().rows(), "\n") + "\n",
		}, "\n"))
	}
	if os.Getenv("ATOLL_DOCS") == "" {
		f.compare(t, slices.Concat(rows, f.rows))
	}
}

// compare fails the test if the page lacks a row of these findings, or has another row for a tested application.
func (f *findings) compare(t *testing.T, rows []string) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/evidence/applications.md")
	require.NoError(t, err)
	var known []string
	for line := range strings.Lines(string(page)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if f.counts[name] != nil {
			known = append(known, strings.TrimSpace(line))
		}
	}
	slices.Sort(known)
	slices.Sort(rows)
	require.Equal(t, strings.Join(known, "\n"), strings.Join(rows, "\n"), "docs/evidence/applications.md is not current: run `make applications`")
	for _, row := range knownDifferences() {
		require.Contains(t, string(page), row, "docs/evidence/applications.md is not current: run `make applications`")
	}
}
