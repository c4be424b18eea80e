// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
)

// MaxMethods is how many methods a type of library code may have.
const MaxMethods = 30

// Methods counts the methods of each type that the files of one package declare: its own, those that embedded types of the same
// package promote, and functions whose first parameter is the type, which are methods in all but name.
func Methods(files []*ast.File) map[string]int {
	own, embedded := map[string]int{}, map[string][]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := subject(d); name != "" {
					own[name]++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if t, ok := s.(*ast.TypeSpec); ok {
						own[t.Name.Name] += 0
						embedded[t.Name.Name] = embeddedIn(t.Type)
					}
				}
			}
		}
	}
	counts := map[string]int{}
	for name := range embedded {
		counts[name] = promoted(name, own, embedded, map[string]bool{})
	}
	return counts
}

// promoted counts the methods of a type and of all types that it embeds.
func promoted(name string, own map[string]int, embedded map[string][]string, counted map[string]bool) int {
	if counted[name] {
		return 0
	}
	counted[name] = true
	n := own[name]
	for _, inner := range embedded[name] {
		n += promoted(inner, own, embedded, counted)
	}
	return n
}

// subject returns the name of the type that a function is about: the type of its receiver, otherwise of its first
// parameter.
func subject(fn *ast.FuncDecl) string {
	fields := fn.Recv
	if fields == nil {
		fields = fn.Type.Params
	}
	if len(fields.List) == 0 {
		return ""
	}
	return typeName(fields.List[0].Type)
}

func embeddedIn(t ast.Expr) (names []string) {
	s, ok := t.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range s.Fields.List {
		if name := typeName(f.Type); len(f.Names) == 0 && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// typeName returns the name of a type of the same package, without pointers and type arguments. It returns "" for other
// types.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	}
	return ""
}

// Sizes checks that no type of a library has more than MaxMethods methods.
func Sizes(p Package, files []*ast.File) []string {
	if p.Name == "main" || p.IsTest() || under(p.Path, "examples", "cmd", "internal/e2e") {
		return nil
	}
	var wrong []string
	counts := Methods(files)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > MaxMethods {
			wrong = append(wrong, fmt.Sprintf("%s.%s has %d methods, at most %d: divide it into several types", p.Path, name, n, MaxMethods))
		}
	}
	return wrong
}
