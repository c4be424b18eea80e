// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	named     = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z]*)`")
	inPackage = regexp.MustCompile(`(?:^|[|;,] *)([a-z]+(?:/[a-z]+)*) $`)
)

// docs/evidence/security.md names tests as evidence. Each named test must exist.
func TestTestsThatPagesNameExist(t *testing.T) {
	packages, err := Packages(t.Context(), root)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, p := range packages {
		for _, f := range load(t, p.Dir, p.TestFiles) {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
					there[p.Path+" "+fn.Name.Name] = true
				}
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "security.md"))
	require.NoError(t, err)
	found := 0
	for line := range strings.Lines(string(page)) {
		pkg := ""
		for _, at := range named.FindAllStringSubmatchIndex(line, -1) {
			if before := inPackage.FindStringSubmatch(line[:at[0]]); before != nil {
				pkg = before[1]
			}
			found++
			if name := line[at[2]:at[3]]; !there[pkg+" "+name] {
				t.Errorf("docs/evidence/security.md names the test %s of %q, which is not there", name, pkg)
			}
		}
	}
	require.Positive(t, found)
}
