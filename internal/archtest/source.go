// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// File is one source file.
type File struct {
	Path    string // from the root of the repository
	Content string
}

const (
	header   = "// Copyright The Atoll Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"
	maxLines = 600
)

var (
	vague      = []string{"util", "utils", "common", "helper", "helpers", "misc", "base"}
	unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
)

func (f File) isTest() bool      { return strings.HasSuffix(f.Path, "_test.go") }
func (f File) isGenerated() bool { return strings.HasPrefix(path.Base(f.Path), "zz_generated") }

// Source checks the form of one file.
func Source(f File) []string {
	if f.isGenerated() {
		return nil
	}
	wrong := append(f.layout(), f.names()...)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, f.Path, f.Content, parser.ParseComments)
	if err != nil {
		return append(wrong, f.violation("%v", err))
	}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			if word := unfinished.FindString(c.Text); word != "" {
				wrong = append(wrong, f.violation("line %d contains %s: finish it or document the reason", set.Position(c.Pos()).Line, word))
			}
		}
	}
	if f.isTest() || parsed.Name.Name == "main" || (Package{Path: path.Dir(f.Path)}).IsTest() {
		return wrong
	}
	return append(wrong, f.effects(parsed)...)
}

func (f File) violation(format string, args ...any) string {
	return f.Path + ": " + fmt.Sprintf(format, args...)
}

// layout checks the beginning and the length of the file.
func (f File) layout() (wrong []string) {
	if !strings.HasPrefix(f.Content, header) {
		wrong = append(wrong, f.violation("does not begin with the two license lines and a blank one"))
	}
	if n := strings.Count(f.Content, "\n"); n > maxLines {
		wrong = append(wrong, f.violation("has %d lines, at most %d: divide it by nouns", n, maxLines))
	}
	return wrong
}

// names checks the words in the path of the file.
func (f File) names() (wrong []string) {
	for _, part := range strings.Split(strings.TrimSuffix(f.Path, ".go"), "/") {
		for _, word := range strings.Split(part, "_") {
			if slices.Contains(vague, word) {
				wrong = append(wrong, f.violation("is named %q, which is vague: name it after its content", word))
			}
		}
	}
	return wrong
}

// effects checks that a file of a library has no flags and no init function, and does not call
// logr.FromContextOrDiscard.
func (f File) effects(parsed *ast.File) (wrong []string) {
	for _, i := range parsed.Imports {
		if i.Path.Value == `"flag"` || strings.HasPrefix(i.Path.Value, `"github.com/spf13/pflag`) {
			wrong = append(wrong, f.violation("imports flag: a library takes Options, a program has flags"))
		}
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
			wrong = append(wrong, f.violation("has an init function: importing a library must have no effect"))
		}
	}
	if strings.Contains(f.Content, "logr.FromContextOrDiscard(") && !under(f.Path, "examples", "cmd", "internal/e2e") {
		wrong = append(wrong, f.violation("uses logr.FromContextOrDiscard, which is silent under controller-runtime: use internal/logging"))
	}
	return wrong
}

// Loggers checks that each method Start of a library calls logging.Into, which takes the Logger of
// the Options.
func Loggers(p Package, files []*ast.File) []string {
	if p.Name == "main" || p.IsTest() || under(p.Path, "internal", "examples", "cmd") || strings.Contains(p.Path, "/internal/") {
		return nil
	}
	var wrong []string
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv != nil && fn.Name.Name == "Start" && !calls(fn, "logging", "Into") {
				wrong = append(wrong, fmt.Sprintf("%s: Start does not call logging.Into with the Logger of its Options", p.Path))
			}
		}
	}
	return wrong
}

// calls reports whether fn calls a function of a package.
func calls(fn *ast.FuncDecl, pkg, name string) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == name {
				x, ok := s.X.(*ast.Ident)
				found = found || ok && x.Name == pkg
			}
		}
		return true
	})
	return found
}

// Documented checks that a package has a package comment: a library in doc.go, a program in any
// file.
func Documented(p Package, files []*ast.File, names []string) []string {
	for i, f := range files {
		if f.Doc.Text() == "" {
			continue
		}
		if p.Name == "main" || names[i] == "doc.go" {
			return nil
		}
	}
	if len(files) == 0 {
		return nil // only tests
	}
	if p.Name == "main" {
		return []string{p.Path + " has no package comment"}
	}
	return []string{p.Path + " has no doc.go with a package comment: list its guarantees and non-guarantees"}
}

var constructor = regexp.MustCompile(`^(New|From|Open|Parse)([A-Z].*)?$`)

// Examples checks that each exported constructor of a library has an example with checked output.
func Examples(p Package, files, tests []*ast.File) []string {
	if p.Name == "main" || under(p.Path, "internal", "examples") || strings.Contains(p.Path, "/internal/") {
		return nil
	}
	shown, types := shownBy(tests), typesIn(files)
	var wrong []string
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !constructor.MatchString(fn.Name.Name) || !returnsOwn(fn, types) || shown[fn.Name.Name] {
				continue
			}
			wrong = append(wrong, fmt.Sprintf("%s.%s has no Example%s with an Output comment", p.Path, fn.Name.Name, fn.Name.Name))
		}
	}
	return wrong
}

// shownBy returns the names that have an example with checked output.
func shownBy(tests []*ast.File) map[string]bool {
	shown := map[string]bool{}
	for _, e := range doc.Examples(tests...) {
		name, _, _ := strings.Cut(e.Name, "_")
		shown[name] = shown[name] || e.Output != "" || e.EmptyOutput
	}
	return shown
}

// typesIn returns the names of the types that files declare.
func typesIn(files []*ast.File) map[string]bool {
	types := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					types[s.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	return types
}

// returnsOwn reports whether the first result of fn is a type of fn's package.
func returnsOwn(fn *ast.FuncDecl, types map[string]bool) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) == 0 {
		return false
	}
	t := fn.Type.Results.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, ok := t.(*ast.Ident)
	return ok && types[name.Name]
}

// Sequential checks a package that .ci/race leaves out: it must not start goroutines, and must not
// import sync or golang.org/x/sync.
func Sequential(p Package, files []*ast.File) []string {
	var violations []string
	for _, f := range files {
		for _, i := range f.Imports {
			if imported, _ := strconv.Unquote(i.Path.Value); under(imported, "sync", "golang.org/x/sync") {
				violations = append(violations, fmt.Sprintf("%s imports %s, and .ci/race leaves it out: take it off that list", p.Path, imported))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				violations = append(violations, fmt.Sprintf("%s starts a goroutine, and .ci/race leaves it out: take it off that list", p.Path))
			}
			return true
		})
	}
	return violations
}
