// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/storedtest"
)

// TestStoredNames compares the names that clusters, logs, scripts and dashboards store with the names in
// testdata/stored.txt. If a name is missing or different, an upgrade breaks installations. ATOLL_STORED=add adds new
// names to the file.
func TestStoredNames(t *testing.T) {
	packages, err := Packages(t.Context(), root)
	require.NoError(t, err)
	var now []string
	for _, p := range packages {
		if !p.IsTest() && !under(p.Path, "internal") {
			now = append(now, StoredConstants(p, load(t, p.Dir, p.Files))...)
		}
	}
	walk(t, ".go", func(name, content string) {
		if !under(name, "adapters", "cmd") || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, content, 0)
		require.NoError(t, err)
		now = append(now, StoredConstants(Package{Path: path.Dir(name)}, []*ast.File{f})...)
	})
	crds, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, crds)
	for _, name := range crds {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		fields, err := StoredFields(content)
		require.NoError(t, err)
		now = append(now, fields...)
	}
	storedtest.Check(t, "testdata/stored.txt", now)
}

func TestStoredNamesRule(t *testing.T) {
	files := parse(t, "package v1alpha1\nconst A = \"a\"\nconst B, C = \"x.dev/b\", 1\n")
	require.Equal(t, []string{"p/v1alpha1 a", "name x.dev/b"}, StoredConstants(Package{Path: "p/v1alpha1"}, files))
	require.Equal(t, []string{"name x.dev/b"}, StoredConstants(Package{Path: "p"}, files))
	require.Equal(t, []string{"p A"}, StoredConstants(Package{Path: "p"}, parse(t, "package p\nconst X Reason = \"A\"\nconst Y Kind = \"B\"\n")))
	require.Equal(t, []string{"metric atoll_peers"}, StoredConstants(Package{Path: "p"}, parse(t, "package p\nvar x = f(\"atoll_peers\")\n")))

	fields, err := StoredFields([]byte(`
metadata: {name: as.x.dev}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            type: object
            properties:
              mode: {type: string, enum: [One, Two]}
              list: {type: array, items: {properties: {a: {type: string}}}}
              map: {type: object, additionalProperties: {properties: {b: {type: integer}}}}
`))
	require.NoError(t, err)
	require.Equal(t, []string{
		"crd as.x.dev v1 .spec object",
		"crd as.x.dev v1 .spec.list array",
		"crd as.x.dev v1 .spec.list[].a string",
		"crd as.x.dev v1 .spec.map object",
		"crd as.x.dev v1 .spec.map{}.b integer",
		"crd as.x.dev v1 .spec.mode string One Two",
	}, fields)
}
