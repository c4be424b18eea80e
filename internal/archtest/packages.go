// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Module is the path of the root module.
const Module = "github.com/atoll-dev/atoll"

// Package describes one package of the root module, with the part of the output of "go list" that
// the rules need. Paths of packages of the module are relative to its root.
type Package struct {
	Path        string   // "." is the root package
	Name        string   // as its files declare it
	Dir         string   // where its files are
	Imports     []string // imports within the module, of files that are not tests
	TestImports []string // imports within the module, of tests
	Foreign     []string // imports, also indirect ones, outside of the module and outside of the standard library
	Files       []string // base names of files that are not tests
	TestFiles   []string
}

// IsTest reports whether the package exists to be imported by tests.
func (p Package) IsTest() bool {
	return strings.HasSuffix(path.Base(p.Path), "test") || under(p.Path, "region/regiontest", "wal/waltest")
}

// under reports whether p is one of roots or below one of them.
func under(p string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return p == r || strings.HasPrefix(p, r+"/") })
}

// listed is the part of the output of go list -json that Packages uses.
type listed struct {
	ImportPath, Name, Dir                        string
	Imports, TestImports, XTestImports, Deps     []string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	Error                                        *struct{ Err string }
}

// Packages lists the packages of the module in dir.
func Packages(ctx context.Context, dir string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Name,Dir,Imports,TestImports,XTestImports,Deps,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Error", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []Package
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if l.Error != nil && len(l.GoFiles)+len(l.TestGoFiles)+len(l.XTestGoFiles) == 0 {
			return nil, fmt.Errorf("go list %s: %s", l.ImportPath, l.Error.Err)
		}
		packages = append(packages, Package{
			Path: relative(l.ImportPath), Name: l.Name, Dir: l.Dir,
			Imports: ours(l.Imports), TestImports: ours(slices.Concat(l.TestImports, l.XTestImports)),
			Foreign: slices.DeleteFunc(slices.Clone(l.Deps), func(d string) bool { return isOurs(d) || !strings.Contains(d, ".") }),
			Files:   slices.Concat(l.GoFiles, l.CgoFiles), TestFiles: slices.Concat(l.TestGoFiles, l.XTestGoFiles),
		})
	}
}

func isOurs(importPath string) bool { return under(importPath, Module) }

func relative(importPath string) string {
	if importPath == Module {
		return "."
	}
	return strings.TrimPrefix(importPath, Module+"/")
}

func ours(imports []string) []string {
	var own []string
	for _, i := range imports {
		if isOurs(i) {
			own = append(own, relative(i))
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}
