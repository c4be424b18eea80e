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

func TestSection(t *testing.T) {
	page := "a\n<!-- x: written by the tests -->\nold\n<!-- end of x -->\nb\n"
	dir := t.TempDir()
	path := filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))

	t.Setenv("ATOLL_DOCS", "")
	Section(t, "page.md", "x", "new\n")
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, page, string(got))

	t.Setenv("ATOLL_DOCS", dir)
	Section(t, "page.md", "x", "new\n")
	got, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(page, "old", "new", 1), string(got))

	_, err = replace(page, "y", "new\n")
	require.ErrorContains(t, err, "no mark")
	_, err = replace("<!-- y: written by the tests -->\n", "y", "new\n")
	require.ErrorContains(t, err, "end of y")
}
