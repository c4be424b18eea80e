// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// entry is one line of the list.
type entry struct {
	id     identifier
	users  []string
	reason string // why it is exported without a user in code
}

// entries returns the identifiers in order. The reason of an identifier without users is the one
// in written, or else the reason that the types show.
func (s *surface) entries(written map[string]string) []entry {
	parts := s.parts()
	var list []entry
	for _, id := range slices.SortedFunc(maps.Keys(s.declared), func(a, b identifier) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	}) {
		e := entry{id: id, users: slices.Sorted(maps.Keys(s.code[id]))}
		if len(e.users) == 0 {
			e.reason = cmp.Or(written[id.String()], s.reason(id, parts))
		}
		list = append(list, e)
	}
	return list
}

// reason returns why an identifier without a user in code is exported, as far as the types show
// it.
func (s *surface) reason(id identifier, parts map[identifier]identifier) string {
	o := s.declared[id]
	if strings.HasSuffix(id.pkg, "v1alpha1") {
		return "part of the stored API"
	}
	if m, ok := o.(*types.Func); ok && m.Signature().Recv() != nil {
		if t := named(m.Signature().Recv().Type()); t != nil {
			if name := s.satisfies(t, m); name != "" {
				return "implements " + name
			}
		}
	}
	if c, ok := o.(*types.Const); ok {
		if t := named(c.Type()); t != nil && t.Obj().Pkg() == o.Pkg() {
			return "value of " + t.Obj().Name()
		}
	}
	if whole, ok := parts[id]; ok {
		return "part of " + within(whole, id.pkg)
	}
	if tests := slices.Sorted(maps.Keys(s.tests[id])); len(tests) > 0 {
		return "used by tests of " + strings.Join(tests, ", ")
	}
	if s.shown[id] {
		return "shown in an example"
	}
	return ""
}

func within(id identifier, pkg string) string {
	if id.pkg == pkg {
		return id.name
	}
	return id.String()
}

// parts returns, for each type, the first identifier in alphabetical order whose declaration
// names the type.
func (s *surface) parts() map[identifier]identifier {
	parts := map[identifier]identifier{}
	for id, o := range s.declared {
		if _, ok := o.(*types.Const); ok {
			continue
		}
		for t := range mentioned(o) {
			part, ok := identify(t)
			if !ok || part == id || strings.HasPrefix(id.name, part.name+".") {
				continue
			}
			if old, ok := parts[part]; !ok || id.String() < old.String() {
				parts[part] = id
			}
		}
	}
	return parts
}

// mentioned returns the types that the exported part of a declaration names.
func mentioned(o types.Object) map[*types.TypeName]bool {
	found := map[*types.TypeName]bool{}
	var walk func(types.Type)
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Alias:
			found[t.Obj()] = true
			walk(t.Rhs())
		case *types.Named:
			found[t.Obj()] = true
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
		case interface{ Elem() types.Type }:
			walk(t.Elem())
			if m, ok := t.(*types.Map); ok {
				walk(m.Key())
			}
		case *types.Signature:
			walk(t.Params())
			walk(t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				walk(v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				walk(m.Type())
			}
		}
	}
	if t, ok := o.(*types.TypeName); ok && !t.IsAlias() {
		walk(t.Type().Underlying())
	} else {
		walk(types.Unalias(o.Type()))
	}
	return found
}
