// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

const pageName = "mutants-packages.md"

// row returns the beginning of a mutant's row in the documentation; the test's failure follows it.
func (m mutant) row() string { return fmt.Sprintf("| %s | %s | ", cell(m.rule), cell(m.change)) }

// rows returns the rows of a table in a page, by their beginning.
func (tab table) rows(page string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(tab.section(page)) {
		for _, m := range tab.mutants {
			if strings.HasPrefix(line, m.row()) {
				rows[m.row()] = line
			}
		}
	}
	return rows
}

// section returns the text between the marks of a table in a page.
func (tab table) section(page string) string {
	_, section, _ := strings.Cut(page, "<!-- "+tab.dir+": written by the tests -->")
	section, _, _ = strings.Cut(section, "<!-- end of "+tab.dir+" -->")
	return section
}

// write writes the section of a table into the page in the directory ATOLL_DOCS. reported has the
// tests' failures, by the beginning of their rows. write keeps the row of a mutant that is not in
// reported. If the page has no such row, the new row shows that the mutant has not been run.
func (tab table) write(t *testing.T, reported map[string]string) {
	t.Helper()
	docs := os.Getenv("ATOLL_DOCS")
	if docs == "" {
		return
	}
	page, err := os.ReadFile(filepath.Join(docs, pageName))
	require.NoError(t, err)
	rows := tab.rows(string(page))
	text := "| rule | mutant | what the tests report |\n|---|---|---|\n"
	for _, m := range tab.mutants {
		switch now, ok := reported[m.row()]; {
		case ok:
			text += m.row() + cell(now) + " |\n"
		case rows[m.row()] != "":
			text += rows[m.row()]
		default:
			text += m.row() + "(not run by `make mutants` yet) " + strings.ReplaceAll(m.tests, "|", " or ") + " |\n"
		}
	}
	docpage.Section(t, pageName, tab.dir, text)
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

var (
	failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (Test\w+)`)
	logged  = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: (.+)$`)
	panicks = regexp.MustCompile(`(?m)^panic: (.+)$`)

	// chance matches text that differs in each run: addresses, hashes, UIDs and ports.
	chance = regexp.MustCompile(`0x[0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}|\d{12,}|127\.0\.0\.1:\d+|/tmp/[\w/.-]+`)
)

const longest = 240

// answer returns the name of the first failed test and its first message. It returns only the
// message of a panic if no test is named, and "" if there is no failure.
func answer(out string) string {
	text := firstReport(out)
	if runes := []rune(text); len(runes) > longest {
		text = string(runes[:longest]) + "…"
	}
	test := failure.FindStringSubmatch(out)
	switch {
	case test != nil:
		return test[1] + ": " + chance.ReplaceAllString(text, "…")
	case panicks.MatchString(out):
		return chance.ReplaceAllString(text, "…")
	}
	return ""
}

// firstReport returns the first of these that the output contains: the message of a failed
// requirement, the error of a failed requirement, a panic, or a logged line.
func firstReport(out string) string {
	for line := range strings.Lines(out) {
		if _, text, ok := strings.Cut(line, "Messages:"); ok {
			return strings.TrimSpace(text)
		}
	}
	if _, text, ok := strings.Cut(out, "Error:"); ok && strings.Contains(out, "Error Trace:") {
		first, rest, _ := strings.Cut(text, "\n")
		first = strings.TrimSpace(first)
		lines := strings.SplitN(rest, "\n", 3)
		switch {
		case first == "Not equal:" && len(lines) > 1:
			return strings.Join(strings.Fields(lines[0]+"; "+lines[1]), " ")
		case strings.HasSuffix(first, ":"):
			return first + " " + strings.TrimSpace(lines[0])
		}
		return first
	}
	for _, pattern := range []*regexp.Regexp{panicks, logged} {
		if match := pattern.FindStringSubmatch(out); match != nil {
			return strings.TrimSpace(match[1])
		}
	}
	return "fails"
}

func TestAnswer(t *testing.T) {
	require.Empty(t, answer("PASS\n"))
	require.Empty(t, answer("FAIL\n"))
	require.Equal(t, "TestA: why 1", answer("--- FAIL: TestA (0.00s)\n    a_test.go:1: \n  Error Trace: x\n  Error: Should be empty\n  Messages: why 1\n"))
	require.Equal(t, "TestA: expected: 1; actual : 2", answer("    --- FAIL: TestA/b (0.00s)\n  Error Trace: x\n  Error: Not equal: \n    expected: 1\n    actual  : 2\n"))
	require.Equal(t, "TestA: Received unexpected error: boom", answer("--- FAIL: TestA (0.00s)\n  Error Trace: x\n  Error: Received unexpected error:\n    boom\n"))
	require.Equal(t, "TestA: got …", answer("--- FAIL: TestA (0.00s)\n    a_test.go:1: got 0xabc\n"))
	require.Equal(t, "boom", answer("panic: boom\n\ngoroutine 1\n"))
	require.Equal(t, `a \| b`, cell("a | b"))
}

// The page has exactly one row for each mutant.
func TestPageIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "evidence", pageName))
	require.NoError(t, err)
	for _, tab := range tables {
		rows := tab.rows(string(page))
		require.Equal(t, 1+len(rows), strings.Count(tab.section(string(page)), "\n| "), "%s has rows of mutants that are no longer in its table", tab.dir)
		for _, m := range tab.mutants {
			require.Contains(t, rows, m.row(), "run the mutant: ATOLL_MUTANTS='^%s: %s$' ATOLL_DOCS=$PWD/docs/evidence go test ./internal/mutants", tab.dir, m.rule)
		}
	}
}
