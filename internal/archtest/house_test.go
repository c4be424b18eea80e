// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// requireNone fails the test if there are violations, and prints each on a line of its own.
func requireNone(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

func TestHouse(t *testing.T) {
	packages, err := Packages(t.Context(), root)
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	t.Run("imports", func(t *testing.T) { requireNone(t, Imports(packages)) })
	t.Run("forbidden", func(t *testing.T) { requireNone(t, Forbidden(packages)) })
	t.Run("documented", func(t *testing.T) {
		for _, p := range packages {
			requireNone(t, Documented(p, load(t, p.Dir, p.Files), p.Files))
		}
	})
	t.Run("loggers", func(t *testing.T) {
		for _, p := range packages {
			requireNone(t, Loggers(p, load(t, p.Dir, p.Files)))
		}
	})
	t.Run("mains", func(t *testing.T) {
		for _, p := range packages {
			requireNone(t, Mains(p, load(t, p.Dir, p.TestFiles)))
		}
	})
	t.Run("sequential", func(t *testing.T) {
		pure := sequential(t)
		for _, p := range packages {
			if pure.MatchString("/" + p.Path) {
				requireNone(t, Sequential(p, load(t, p.Dir, p.Files)))
			}
		}
	})
	t.Run("sizes", func(t *testing.T) {
		for _, p := range packages {
			requireNone(t, Sizes(p, load(t, p.Dir, p.Files)))
		}
	})
	t.Run("complexity", func(t *testing.T) {
		functions := map[string]int{}
		for _, p := range packages {
			for _, f := range load(t, p.Dir, p.Files) {
				for _, d := range f.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok {
						functions[p.Path+"."+strings.TrimPrefix(subject(fn)+"."+fn.Name.Name, ".")] = Complexity(fn)
					}
				}
			}
		}
		requireNone(t, Complexities(functions))
	})
	t.Run("examples", func(t *testing.T) {
		for _, p := range packages {
			requireNone(t, Examples(p, load(t, p.Dir, p.Files), load(t, p.Dir, p.TestFiles)))
		}
	})
}

// sequential returns the pattern of the packages that .ci/race leaves out.
func sequential(t *testing.T) *regexp.Regexp {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, ".ci/race"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^pure='(.+)'$`).FindSubmatch(script)
	require.NotNil(t, found, ".ci/race names the packages that it leaves out as pure='...'")
	return regexp.MustCompile(string(found[1]))
}

func load(t *testing.T, dir string, names []string) []*ast.File {
	t.Helper()
	files := make([]*ast.File, 0, len(names))
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

func TestRequirements(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	var mod struct{ Require []Requirement }
	require.NoError(t, json.Unmarshal(out, &mod))
	require.NotEmpty(t, mod.Require)
	requireNone(t, Requirements(mod.Require))
}

// walk calls visit for each file with the extension ext in all modules of the repository, and returns the number of
// these files. Paths are relative to the root.
func walk(t *testing.T, ext string, visit func(path, content string)) (files int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ext {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files++
		visit(filepath.ToSlash(name), string(content))
		return nil
	}))
	return files
}

// TestWords checks the comments, the names and the pages in all modules of the repository. It skips docs/evidence,
// which tests write, and the change log, which quotes old names.
func TestWords(t *testing.T) {
	files := walk(t, ".go", func(path, content string) {
		if (File{Path: path}).isGenerated() {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, content, parser.ParseComments)
		require.NoError(t, err)
		requireNone(t, Comments(path, file, set))
		requireNone(t, Names(path, file, set))
	})
	require.Greater(t, files, 1000)
	pages := walk(t, ".md", func(path, content string) {
		if path != "CHANGELOG.md" && !under(path, "docs/evidence") {
			requireNone(t, Prose(path, content))
		}
	})
	require.Greater(t, pages, 10)
}

// TestSource covers all modules of the repository, nested ones included.
func TestSource(t *testing.T) {
	files := walk(t, ".go", func(path, content string) { requireNone(t, Source(File{Path: path, Content: content})) })
	require.Positive(t, files)
}
