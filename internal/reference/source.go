// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is one package of the library.
type source struct {
	path  string // relative to the root of the repository
	files []*ast.File
}

// notLibrary are the directories whose packages users do not import.
var notLibrary = []string{"cmd", "docs", "examples", "internal", "testdata", "tools"}

// library parses the packages of the library in all modules of the repository, without tests, in the order of their
// paths.
func library(root string) ([]source, error) {
	var packages []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains(notLibrary, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		i := slices.IndexFunc(packages, func(p source) bool { return p.path == dir })
		if i < 0 {
			packages = append(packages, source{path: dir})
			i = len(packages) - 1
		}
		packages[i].files = append(packages[i].files, parsed)
		return nil
	})
	slices.SortFunc(packages, func(a, b source) int { return strings.Compare(a.path, b.path) })
	return packages, err
}

// line returns the first paragraph of a comment as one line, which fits into a cell of a table.
func line(comment string) string {
	first, _, _ := strings.Cut(comment, "\n\n")
	return cell(strings.Join(strings.Fields(first), " "))
}

// cell escapes a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "\n", " ").Replace(text)
}
