// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// optional matches the names of structs with which a program configures the library.
var optional = regexp.MustCompile(`^([A-Z][A-Za-z]*)?Options$|^Budget$|^Trust$`)

// option is a field of a struct that optional matches.
type option struct{ pkg, typ, field string }

// A user relies on each documented option. So a package must read each of its options, and a test
// must set it.
func TestEveryOptionIsReadAndTried(t *testing.T) {
	packages, err := Packages(t.Context(), root)
	require.NoError(t, err)
	options, tried := map[option]bool{}, map[option]bool{}
	for _, p := range packages {
		if p.Name == "main" || under(p.Path, "internal", "examples") || strings.Contains(p.Path, "/internal/") {
			continue
		}
		files := load(t, p.Dir, p.Files)
		read := map[string]bool{}
		for _, f := range files {
			maps.Copy(read, selected(f))
		}
		for _, f := range files {
			for _, o := range optionsOf(f, path.Base(p.Path)) {
				options[o] = read[o.field]
			}
		}
	}
	require.NotEmpty(t, options)
	for _, p := range packages {
		for _, f := range load(t, p.Dir, p.TestFiles) {
			maps.Copy(tried, given(f, path.Base(p.Path)))
		}
	}
	for o, read := range options {
		if !read {
			t.Errorf("%s.%s.%s is read by nothing in its package", o.pkg, o.typ, o.field)
		}
		if !tried[o] && !tried[option{o.pkg, "", o.field}] {
			t.Errorf("%s.%s.%s is given by no test", o.pkg, o.typ, o.field)
		}
	}
}

// optionsOf returns the options that f declares.
func optionsOf(f *ast.File, pkg string) (options []option) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !optional.MatchString(spec.Name.Name) {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						options = append(options, option{pkg, spec.Name.Name, name.Name})
					}
				}
			}
		}
		return true
	})
	return options
}

// selected returns the names of all fields that f reads, of any type. It also returns the names of
// methods and of members of packages that f uses.
func selected(f *ast.File) map[string]bool {
	var written []ast.Expr
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			written = append(written, n.Lhs...)
		case *ast.SelectorExpr:
			if !slices.Contains(written, ast.Expr(n)) {
				names[n.Sel.Name] = true
			}
		}
		return true
	})
	return names
}

// given returns the options that a test sets, in a composite literal or by assignment. An option
// has no typ if the source does not show the type: in an assignment, and in a literal inside
// another literal.
func given(f *ast.File, pkg string) map[option]bool {
	options := map[option]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			of := option{pkg: pkg}
			switch typ := n.Type.(type) {
			case *ast.Ident:
				of.typ = typ.Name
			case *ast.SelectorExpr:
				if x, ok := typ.X.(*ast.Ident); ok {
					of.pkg, of.typ = x.Name, typ.Sel.Name
				}
			}
			for _, element := range n.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok {
						of.field = key.Name
						options[of] = true
					}
				}
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if s, ok := left.(*ast.SelectorExpr); ok {
					options[option{pkg: pkg, field: s.Sel.Name}] = true
				}
			}
		}
		return true
	})
	return options
}
