// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// users are the packages that use an identifier.
type users map[string]bool

// surface holds the identifiers that the packages of a module export, and the users of each.
type surface struct {
	declared map[identifier]types.Object
	code     map[identifier]users // users in code, outside the package
	tests    map[identifier]users // users in tests of other packages
	shown    map[identifier]bool  // used by an example of the package itself

	interfaces []contract
}

// load adds the packages of the module in dir.
func (s *surface) load(dir string) error {
	if s.declared == nil {
		s.declared, s.code, s.tests, s.shown = map[identifier]types.Object{}, map[identifier]users{}, map[identifier]users{}, map[identifier]bool{}
	}
	loaded, err := packages.Load(&packages.Config{
		Dir:   dir,
		Tests: true,
		Mode:  packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedFiles,
	}, "./...")
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range loaded {
		for _, e := range p.Errors {
			errs = append(errs, fmt.Errorf("%s: %w", p.ID, e))
		}
		if p.PkgPath == p.ID && library(p.PkgPath) {
			s.declare(p)
		}
		s.uses(p)
	}
	return errors.Join(errs...)
}

// declare adds the identifiers and interfaces that p exports, and the interfaces that the imports of
// p export.
func (s *surface) declare(p *packages.Package) {
	scope := p.Types.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		s.add(p.Fset, o)
		t, ok := o.(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		if n, ok := t.Type().(*types.Named); ok {
			for m := range n.Methods() {
				s.add(p.Fset, m)
			}
		}
	}
	s.interfaces = append(s.interfaces, contractsOf(p.Types)...)
	for _, other := range p.Types.Imports() {
		s.interfaces = append(s.interfaces, contractsOf(other)...)
	}
}

// add adds an exported object that a person wrote.
func (s *surface) add(files *token.FileSet, o types.Object) {
	id, ok := identify(o)
	if ok && !strings.Contains(files.Position(o.Pos()).Filename, "zz_generated") {
		s.declared[id] = o
	}
}

// uses adds the identifiers that p uses.
func (s *surface) uses(p *packages.Package) {
	own := strings.TrimSuffix(p.PkgPath, "_test")
	for _, file := range p.Syntax {
		name := p.Fset.Position(file.Pos()).Filename
		test, example := strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, "example_test.go")
		ast.Inspect(file, func(n ast.Node) bool {
			ident, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[ident]
			if f, ok := o.(*types.Func); ok {
				o = f.Origin()
			}
			id, ok := identify(o)
			switch {
			case !ok:
			case o.Pkg().Path() != own && test:
				s.tests[id] = s.tests[id].with(own)
			case o.Pkg().Path() != own:
				s.code[id] = s.code[id].with(own)
			case example:
				s.shown[id] = true
			}
			return true
		})
	}
}

func (u users) with(path string) users {
	if u == nil {
		u = users{}
	}
	u[strings.TrimPrefix(path, module+"/")] = true
	return u
}
