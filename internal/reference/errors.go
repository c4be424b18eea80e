// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// failure is an exported error of the library.
type failure struct {
	pkg, name string
	form      string // as a caller names it: a pointer for a type whose method Error has a pointer receiver
	doc       string // the comment of the declaration
}

// failures returns the exported errors of the packages: variables whose names begin with Err, and types with a
// method Error.
func failures(packages []source) []failure {
	var found []failure
	for _, p := range packages {
		start := len(found)
		forms := errorTypes(p.files)
		for _, f := range p.files {
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					found = append(found, declared(p.path, g, forms)...)
				}
			}
		}
		slices.SortFunc(found[start:], func(a, b failure) int { return strings.Compare(a.name, b.name) })
	}
	return found
}

// errorTypes returns the types with a method Error() string: the name of each, and the form that implements error.
func errorTypes(files []*ast.File) map[string]string {
	forms := map[string]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Error" || fn.Type.Params.NumFields() > 0 || fn.Type.Results.NumFields() != 1 {
				continue
			}
			receiver, pointer := fn.Recv.List[0].Type, ""
			if star, ok := receiver.(*ast.StarExpr); ok {
				receiver, pointer = star.X, "*"
			}
			if name, ok := receiver.(*ast.Ident); ok {
				forms[name.Name] = pointer + name.Name
			}
		}
	}
	return forms
}

// declared returns the exported errors of one declaration.
func declared(pkg string, g *ast.GenDecl, forms map[string]string) []failure {
	var found []failure
	add := func(name, form string, doc *ast.CommentGroup) {
		if doc == nil && len(g.Specs) == 1 {
			doc = g.Doc // the comment of a declaration without parentheses
		}
		if ast.IsExported(name) {
			found = append(found, failure{pkg, name, form, doc.Text()})
		}
	}
	for _, s := range g.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if form, ok := forms[s.Name.Name]; ok {
				add(s.Name.Name, form, s.Doc)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if g.Tok == token.VAR && strings.HasPrefix(name.Name, "Err") {
					add(name.Name, name.Name, s.Doc)
				}
			}
		}
	}
	return found
}

// errorsPage is the text of docs/evidence/errors.md.
func errorsPage(list []failure) string {
	var b strings.Builder
	b.WriteString(`# Errors

For those who handle errors of Atoll's packages in a program. After this page you know the meaning of each exported error, and what to do about it.

` + "`make reference`" + ` writes this page from the comments of the sources. A test fails if the page is not current, or if the comment of an exported error has no remedy. Compare variables with ` + "`errors.Is`" + `, and find types with ` + "`errors.As`" + ` or ` + "`errors.AsType`" + `. The text of an error names the objects, the peers and the remedy of the case at hand. Texts may change; identifiers are covered by [compatibility](../compatibility.md).

`)
	fmt.Fprintf(&b, "%d errors.\n\n| package | error | meaning, and what to do |\n|---|---|---|\n", len(list))
	for _, f := range list {
		fmt.Fprintf(&b, "| [%s](../../%s) | `%s` | %s |\n", f.pkg, f.pkg, f.form, line(f.doc))
	}
	return b.String()
}

// sentence matches the end of a sentence. The two characters before the full stop leave out abbreviations such as
// "e.g.".
var sentence = regexp.MustCompile(`[^.\s]{2}\.\s+`)

// remedy matches an instruction to the caller: an imperative at the beginning of a sentence or of a clause.
var remedy = regexp.MustCompile(`(?i)(^|[.,:;] |\bthen )(add|apply|ask|call|change|check|choose|compare|configure|connect|correct|create|decide|` +
	`delete|discard|do|end|find|fill|free|give|grant|handle|inspect|install|keep|leave|let|list|look|make|move|open|pass|raise|read|renew|reject|release|` +
	`remove|repair|repeat|report|resolve|restore|retry|return|run|send|set|show|start|stop|take|treat|try|undo|update|use|wait|watch|wrap|write)\b`)

// faults returns the errors whose comments do not state what to do.
func faults(list []failure) []string {
	var wrong []string
	for _, f := range list {
		if !hasRemedy(line(f.doc)) {
			wrong = append(wrong, fmt.Sprintf("%s.%s: state in the first paragraph of its comment, after the first sentence, what the caller does about the error", f.pkg, f.name))
		}
	}
	return wrong
}

// hasRemedy reports whether a sentence after the first is an instruction.
func hasRemedy(text string) bool {
	first := sentence.FindStringIndex(text)
	return first != nil && remedy.MatchString(text[first[1]:])
}
