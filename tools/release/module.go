// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"
)

// hash is the two lines of a go.sum for one module.
type hash struct{ zip, mod string }

// hashes has the hashes of the modules that are released, by path.
type hashes map[string]hash

// module is a module that is released.
type module struct {
	path   string
	folder string // from the root of the repository; empty: the root
	file   *modfile.File
}

// tag returns the tag by which the go command finds a version of the module.
func (m *module) tag(version string) string { return path.Join(m.folder, version) }

// released returns the modules of the repository that others import or install, each after those that it requires.
func released(source string) ([]*module, error) {
	files := []string{"go.mod"}
	for _, pattern := range []string{"adapters/*/go.mod", "cmd/*/go.mod"} {
		found, err := filepath.Glob(filepath.Join(source, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			f, err := filepath.Rel(source, f)
			if err != nil {
				return nil, err
			}
			files = append(files, filepath.ToSlash(f))
		}
	}
	var modules []*module
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(f)))
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(f, data, nil)
		if err != nil {
			return nil, err
		}
		folder := path.Dir(f)
		if folder == "." {
			folder = ""
		}
		modules = append(modules, &module{path: file.Module.Mod.Path, folder: folder, file: file})
	}
	return ordered(modules)
}

// ordered sorts modules so that each comes after those that it requires.
func ordered(modules []*module) ([]*module, error) {
	var done []*module
	for len(done) < len(modules) {
		before := len(done)
		for _, m := range modules {
			if !slices.Contains(done, m) && !slices.ContainsFunc(modules, func(o *module) bool { return m.requires(o) && !slices.Contains(done, o) }) {
				done = append(done, m)
			}
		}
		if len(done) == before {
			return nil, fmt.Errorf("modules require one another in a circle, after %d of %d", before, len(modules))
		}
	}
	return done, nil
}

func (m *module) requires(o *module) bool {
	return slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return r.Mod.Path == o.path })
}

// pin rewrites go.mod and go.sum in the source: the module requires the other modules at the version, by their hashes.
func (m *module) pin(source, version string, sums hashes) error {
	folder := filepath.Join(source, filepath.FromSlash(m.folder))
	var lines []string
	for p, h := range sums {
		if !m.requires(&module{path: p}) {
			continue
		}
		if err := m.file.AddRequire(p, version); err != nil {
			return err
		}
		if err := m.file.DropReplace(p, ""); err != nil {
			return err
		}
		lines = append(lines, p+" "+version+" "+h.zip, p+" "+version+"/go.mod "+h.mod)
	}
	m.file.Cleanup()
	for _, r := range m.file.Replace {
		return fmt.Errorf("go.mod replaces %s, which is not released: go install rejects such a module", r.Old.Path)
	}
	if len(lines) == 0 {
		return nil
	}
	data, err := m.file.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), data, 0o644); err != nil {
		return err
	}
	if err := addSums(filepath.Join(folder, "go.sum"), lines); err != nil {
		return err
	}
	// The go command adds the license of the root to a module that has none. With the file its archive is the same in any proxy.
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "LICENSE"), license, 0o644)
}

// addSums adds lines to a go.sum, in the order of the go command.
func addSums(file string, lines []string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	byVersion := map[gomodule.Version]string{}
	var versions []gomodule.Version
	for _, line := range append(strings.Split(strings.TrimSpace(string(data)), "\n"), lines...) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("%s: unexpected line %q", file, line)
		}
		v := gomodule.Version{Path: fields[0], Version: fields[1]}
		versions, byVersion[v] = append(versions, v), line
	}
	gomodule.Sort(versions)
	var b strings.Builder
	for _, v := range versions {
		b.WriteString(byVersion[v] + "\n")
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
