// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package docpage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Section replaces the text between the marks of a section, in a page of the directory that
// ATOLL_DOCS names. Without ATOLL_DOCS it does nothing. It fails the test if the page cannot be
// read or written, or lacks the marks.
func Section(t testing.TB, page, section, text string) {
	t.Helper()
	dir := os.Getenv("ATOLL_DOCS")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, page)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	written, err := replace(string(old), section, text)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(written), 0o644))
}

// Page writes a whole page to the directory that ATOLL_DOCS names. Without ATOLL_DOCS it fails the test if the page
// in dir has another text, and names the command that writes the page.
func Page(t testing.TB, dir, page, text, command string) {
	t.Helper()
	if out := os.Getenv("ATOLL_DOCS"); out != "" {
		require.NoError(t, os.WriteFile(filepath.Join(out, page), []byte(text), 0o644))
		return
	}
	current, err := os.ReadFile(filepath.Join(dir, page))
	require.NoError(t, err)
	if string(current) != text {
		t.Errorf("%s is not current: run `%s`", page, command)
	}
}

func replace(page, section, text string) (string, error) {
	first, last := "<!-- "+section+": written by the tests -->\n", "<!-- end of "+section+" -->"
	before, rest, ok := strings.Cut(page, first)
	if !ok {
		return "", errNoSection(first)
	}
	_, after, ok := strings.Cut(rest, last)
	if !ok {
		return "", errNoSection(last)
	}
	return before + first + text + last + after, nil
}

type errNoSection string

func (e errNoSection) Error() string { return "the page has no mark " + string(e) }
