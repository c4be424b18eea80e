// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	begins = "<!-- proxy: written by the tests -->\n"
	ends   = "<!-- proxy: end -->\n"
)

// page is the table of docs/security.md.
type page struct{ table strings.Builder }

func newPage() *page {
	p := &page{}
	p.table.WriteString("| what is tried | known from | what stands against it | what the tests find without it |\n|---|---|---|---|\n")
	return p
}

func (p *page) add(c check, found string) {
	fmt.Fprintf(&p.table, "| %s | %s | %s | %s |\n", c.name, c.known, c.guard, cmp.Or(found, "– (not ours to take away)"))
}

// write puts the table between the marks of the page.
func (p *page) write(t *testing.T) {
	t.Helper()
	dir := os.Getenv("ATOLL_DOCS")
	if dir == "" {
		return
	}
	path := filepath.Join(dir, "security.md")
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(old), begins)
	_, after, ok2 := strings.Cut(rest, ends)
	require.True(t, ok && ok2, "%s has no marks", path)
	require.NoError(t, os.WriteFile(path, []byte(before+begins+p.table.String()+ends+after), 0o600))
}
