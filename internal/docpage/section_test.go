// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package docpage

import (
	"fmt"
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

// recorder keeps the failure of a test that would fail.
type recorder struct {
	testing.TB
	failure string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestPage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ATOLL_DOCS", dir)
	Page(t, "elsewhere", "page.md", "text\n", "make page")

	t.Setenv("ATOLL_DOCS", "")
	Page(t, dir, "page.md", "text\n", "make page")
	old := &recorder{TB: t}
	Page(old, dir, "page.md", "other text\n", "make page")
	require.Equal(t, "page.md is not current: run `make page`", old.failure)
}
