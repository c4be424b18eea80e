// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// publish writes the module to a folder in the layout of a GOPROXY, and returns its hashes.
func (m *module) publish(source, proxy, version string, at time.Time) (hash, error) {
	escaped, err := gomodule.EscapePath(m.path)
	if err != nil {
		return hash{}, err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return hash{}, err
	}
	folder := filepath.Join(source, filepath.FromSlash(m.folder))
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return hash{}, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, at})
	if err != nil {
		return hash{}, err
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return hash{}, err
		}
	}
	file := filepath.Join(dir, version+".zip")
	if err := pack(file, gomodule.Version{Path: m.path, Version: version}, folder); err != nil {
		return hash{}, err
	}
	var h hash
	if h.zip, err = dirhash.HashZip(file, dirhash.Hash1); err != nil {
		return hash{}, err
	}
	h.mod, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(mod)), nil })
	return h, err
}

// pack writes the archive of a module, without the modules nested in it.
func pack(file string, v gomodule.Version, folder string) (err error) {
	w, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return zip.CreateFromDir(w, v, folder)
}
