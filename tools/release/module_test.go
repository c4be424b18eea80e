// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRefused gives command lines that release nothing.
func TestRefused(t *testing.T) {
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "file"), nil, 0o600))
	for name, c := range map[string]struct {
		args  []string
		wrong string
	}{
		"no folder":        {[]string{"-version", "v0.4.0"}, "-out is missing"},
		"no version":       {[]string{"-out", t.TempDir()}, `-version ""`},
		"short version":    {[]string{"-out", t.TempDir(), "-version", "v0.4"}, `-version "v0.4"`},
		"another major":    {[]string{"-out", t.TempDir(), "-version", "v2.0.0"}, `-version "v2.0.0"`},
		"folder with file": {[]string{"-out", full, "-version", "v0.4.0"}, "is not empty"},
		"no such commit":   {[]string{"-out", t.TempDir(), "-version", "v0.4.0", "-commit", "0000000"}, "git rev-parse"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, run(t.Context(), c.args, io.Discard), c.wrong)
		})
	}
}

// TestPin rewrites modules that require one another.
func TestPin(t *testing.T) {
	source := t.TempDir()
	file := func(name, text string) {
		name = filepath.Join(source, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	file("LICENSE", "free\n")
	file("go.mod", "module example.com/r\n")
	file("cmd/a/go.mod", "module example.com/r/cmd/a\n\nrequire (\n\texample.com/r v0.0.0\n\texample.com/r/cmd/b v0.0.0 // indirect\n\texample.com/z v1.0.0\n)\n\nreplace (\n\texample.com/r => ../..\n\texample.com/r/cmd/b => ../b\n)\n")
	file("cmd/a/go.sum", "example.com/z v1.0.0 h1:z\nexample.com/z v1.0.0/go.mod h1:zm\n")
	file("cmd/b/go.mod", "module example.com/r/cmd/b\n")

	modules, err := released(source)
	require.NoError(t, err)
	var folders []string
	for _, m := range modules {
		folders = append(folders, m.folder)
	}
	require.Equal(t, []string{"", "cmd/b", "cmd/a"}, folders, "a module comes after those that it requires")
	require.Equal(t, "v0.1.0", modules[0].tag("v0.1.0"))
	require.Equal(t, "cmd/b/v0.1.0", modules[1].tag("v0.1.0"))

	sums := hashes{"example.com/r": {"h1:r", "h1:rm"}, "example.com/r/cmd/b": {"h1:b", "h1:bm"}}
	require.NoError(t, modules[2].pin(source, "v0.1.0", sums))
	for name, expected := range map[string]string{
		"cmd/a/go.mod":  "module example.com/r/cmd/a\n\nrequire (\n\texample.com/r v0.1.0\n\texample.com/r/cmd/b v0.1.0 // indirect\n\texample.com/z v1.0.0\n)\n",
		"cmd/a/go.sum":  "example.com/r v0.1.0 h1:r\nexample.com/r v0.1.0/go.mod h1:rm\nexample.com/r/cmd/b v0.1.0 h1:b\nexample.com/r/cmd/b v0.1.0/go.mod h1:bm\nexample.com/z v1.0.0 h1:z\nexample.com/z v1.0.0/go.mod h1:zm\n",
		"cmd/a/LICENSE": "free\n",
	} {
		data, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, expected, string(data), name)
	}

	file("cmd/b/go.mod", "module example.com/r/cmd/b\n\nreplace example.com/z => example.com/fork v1.0.0\n")
	modules, err = released(source)
	require.NoError(t, err)
	require.ErrorContains(t, modules[1].pin(source, "v0.1.0", sums), "replaces example.com/z")

	file("cmd/b/go.mod", "module example.com/r/cmd/b\n\nrequire example.com/r/cmd/a v0.0.0\n")
	_, err = released(source)
	require.ErrorContains(t, err, "in a circle")
}

// TestZipped reads the archive for Windows.
func TestZipped(t *testing.T) {
	at := time.Date(2026, 11, 29, 1, 2, 4, 0, time.UTC)
	archive, err := zipped([]entry{{"LICENSE", 0o644, []byte("free")}, {"a.exe", 0o755, []byte("program")}}, at)
	require.NoError(t, err)
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	require.Len(t, r.File, 2)
	require.Equal(t, "a.exe", r.File[1].Name)
	require.True(t, at.Equal(r.File[1].Modified))
	f, err := r.File[1].Open()
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, "program", string(data))
}

// TestVerify finds a module in a program that its go.sum does not have.
func TestVerify(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.sum")
	require.NoError(t, os.WriteFile(file, []byte("example.com/z v1.0.0 h1:z\nexample.com/z v1.0.0/go.mod h1:zm\n"), 0o600))
	dep := func(m debug.Module) *debug.BuildInfo { return &debug.BuildInfo{Deps: []*debug.Module{&m}} }
	r := &release{}
	require.NoError(t, r.verify(dep(debug.Module{Path: "example.com/z", Version: "v1.0.0", Sum: "h1:z"}), file))
	for name, m := range map[string]debug.Module{
		"another hash":    {Path: "example.com/z", Version: "v1.0.0", Sum: "h1:y"},
		"another version": {Path: "example.com/z", Version: "v1.0.1", Sum: "h1:z"},
		"replaced":        {Path: "example.com/z", Version: "v1.0.0", Sum: "h1:z", Replace: &debug.Module{Path: "../z"}},
	} {
		require.ErrorContains(t, r.verify(dep(m), file), "not in", name)
	}
}
