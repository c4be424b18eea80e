// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// definition matches a row of docs/glossary.md: the terms, the meaning, and the link.
var definition = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+\. \| \[[^]]+\]\(([^)#]+)(?:#([^)]+))?\) \|$`)

// The page or package that docs/glossary.md names for a term uses the term, and has the section.
func TestGlossary(t *testing.T) {
	page, err := os.ReadFile("docs/glossary.md")
	require.NoError(t, err)
	rows := definition.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, strings.Count(string(page), "\n| ")-strings.Count(string(page), "\n| term |"), "a row of docs/glossary.md is not of the form | term | meaning. | [link](path) |")
	defined := map[string]bool{}
	for _, row := range rows {
		text := source(t, filepath.Join("docs", row[2]))
		for term := range strings.SplitSeq(row[1], ", ") {
			require.False(t, defined[term], "docs/glossary.md defines %q twice", term)
			defined[term] = true
			require.Regexp(t, `(?i)\b`+regexp.QuoteMeta(term), text, "docs/glossary.md names %s for %q", row[2], term)
		}
		if row[3] != "" {
			require.Contains(t, sections(text), row[3], "docs/glossary.md links to a section of %s", row[2])
		}
	}
}

// source returns the text of a page, or of all Go files in the directory of a package.
func source(t *testing.T, path string) string {
	t.Helper()
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, err = filepath.Glob(filepath.Join(path, "*.go"))
		require.NoError(t, err)
	}
	require.NotEmpty(t, files, path)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

var heading = regexp.MustCompile(`(?m)^#+ (.+)$`)

// sections returns the anchors of the headings of a page.
func sections(page string) []string {
	var anchors []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		words := strings.Fields(strings.ToLower(regexp.MustCompile("[^A-Za-z0-9_ -]").ReplaceAllString(m[1], "")))
		anchors = append(anchors, strings.Join(words, "-"))
	}
	return anchors
}
