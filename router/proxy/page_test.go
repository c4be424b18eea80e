// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// page builds the table of docs/evidence/security.md.
type page struct{ table strings.Builder }

func newPage() *page {
	p := &page{}
	p.table.WriteString("| attack | known from | guard | finding of the tests without the guard |\n|---|---|---|---|\n")
	return p
}

func (p *page) add(c check, found string) {
	found, _, _ = strings.Cut(found, "\n")
	fmt.Fprintf(&p.table, "| %s | %s | %s | %s |\n", c.name, c.known, c.guard, cmp.Or(found, "– (a guard of the Go library)"))
}

func (p *page) write(t *testing.T) {
	t.Helper()
	docpage.Section(t, "security.md", "proxy", p.table.String())
}
