// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The program in README.md is the one that Example runs.
func TestReadmeProgram(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(source), "\nfunc tenancy")
	require.True(t, ok)
	body, _, ok := strings.Cut(rest, "\n}\n")
	require.True(t, ok)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```go\nfunc tenancy"+body+"\n}\n```\n", "README.md must show tenancy of example_test.go, as it is")
}

var row = regexp.MustCompile(`(?m)^\| .*\]\(([a-z/]+)\)`)

// The packages that README.md lists have code.
func TestReadmePackages(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := row.FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, rows)
	for _, m := range rows {
		sources, err := filepath.Glob(filepath.Join(m[1], "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, sources, "README.md lists %s", m[1])
	}
}

// docs/compatibility.md gives a level to each package of the library.
func TestCompatibilityPackages(t *testing.T) {
	page, err := os.ReadFile("docs/compatibility.md")
	require.NoError(t, err)
	packages := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir() || path == ".":
			return err
		case strings.HasPrefix(d.Name(), "."), slices.Contains([]string{"internal", "cmd", "deploy", "examples", "tools", "testdata", "docs", "v1alpha1"}, d.Name()):
			return filepath.SkipDir
		}
		if sources, err := filepath.Glob(filepath.Join(path, "doc.go")); err != nil || len(sources) == 0 {
			return err
		}
		packages++
		require.Contains(t, string(page), "`"+filepath.ToSlash(path)+"`", "docs/compatibility.md must have a level for %s", path)
		return nil
	}))
	require.Greater(t, packages, 20)
}

var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// Every relative link of every page leads somewhere.
func TestLinks(t *testing.T) {
	links := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(page), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			_, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]))
			require.NoError(t, err, "%s links to %s", path, m[1])
		}
		return nil
	}))
	require.Positive(t, links)
}

var named = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z]+)`")

// Every test that these pages name exists.
func TestPagesNameTests(t *testing.T) {
	for _, path := range []string{"docs/guarantees.md", "docs/pitfalls.md"} {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		found := named.FindAllStringSubmatch(string(page), -1)
		require.NotEmpty(t, found)
		for _, m := range found {
			sources, err := filepath.Glob(filepath.Join(m[1], "*_test.go"))
			require.NoError(t, err)
			exists := false
			for _, source := range sources {
				content, err := os.ReadFile(source)
				require.NoError(t, err)
				exists = exists || strings.Contains(string(content), "\nfunc "+m[2]+"(")
			}
			require.True(t, exists, "%s names %s, which %s does not have", path, m[2], m[1])
		}
	}
}
