// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// named is a constant of a type of conditions or reasons.
type named struct{ value, doc string }

// conditionSection describes the conditions of a kind and their reasons, or returns "" if the package of the kind
// declares none.
func conditionSection(packages []source, kind string) string {
	var b strings.Builder
	for _, part := range []struct{ title, suffix, doc string }{
		{"Conditions", "ConditionType", "condition"},
		{"Reasons", "ConditionReason", "reason"},
	} {
		list := constants(packages, kind, part.suffix)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s of %s\n\n| %s | meaning |\n|---|---|\n", part.title, kind, part.doc)
		for _, c := range list {
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, c.doc)
		}
	}
	return b.String()
}

// constants returns the constants of the type kind+suffix in the package that declares the kind, or of the type suffix if
// the package has one type for all of its kinds.
func constants(packages []source, kind, suffix string) []named {
	var list []named
	for _, p := range packages {
		if !strings.HasSuffix(p.path, "v1alpha1") || !declares(p, kind) {
			continue
		}
		for _, s := range specs[*ast.ValueSpec](p, token.CONST) {
			if t, ok := s.Type.(*ast.Ident); !ok || t.Name != kind+suffix && t.Name != suffix {
				continue
			}
			value, ok := s.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				continue
			}
			list = append(list, named{text, about(s)})
		}
	}
	return list
}

func declares(p source, kind string) bool {
	for _, s := range specs[*ast.TypeSpec](p, token.TYPE) {
		if s.Name.Name == kind && !s.Assign.IsValid() {
			return true
		}
	}
	return false
}

// specs returns the declarations of one form in a package.
func specs[S ast.Spec](p source, form token.Token) []S {
	var list []S
	for _, f := range p.files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != form {
				continue
			}
			for _, s := range g.Specs {
				list = append(list, s.(S))
			}
		}
	}
	return list
}

// about returns the comment of a constant for a cell of a table, without the constant's name. Items of a list stay apart.
func about(s *ast.ValueSpec) string {
	name := s.Names[0].Name
	var lines []string
	for line := range strings.Lines(s.Doc.Text()) {
		item := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- "))
		switch {
		case item == "":
		case begins(item):
			lines = append(lines, "<br>"+cell(item))
		default:
			lines = append(lines, cell(item))
		}
	}
	text := strings.ReplaceAll(strings.Join(lines, " "), " <br>", "<br>")
	return strings.TrimPrefix(strings.TrimPrefix(text, name+": "), name+" ")
}

// begins reports whether a line begins the meaning of a status.
func begins(line string) bool {
	for _, status := range []string{"True:", "False:", "Unknown:"} {
		if strings.HasPrefix(line, status) {
			return true
		}
	}
	return false
}
