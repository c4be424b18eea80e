// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/dirhash"
)

const (
	root     = "github.com/atoll-dev/atoll"
	atollctl = root + "/cmd/atollctl"
	version  = "v0.4.0"
)

// TestRelease releases HEAD for this machine, and uses the release as its users do.
func TestRelease(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-version", version, "-out", dir, "-programs", "atollctl", "-platforms", runtime.GOOS + "/" + runtime.GOARCH}, &out))
	require.Contains(t, out.String(), " "+version+" ", "the tag of the root")
	require.Contains(t, out.String(), " cmd/atollctl/"+version)

	name := filepath.Join(dir, fmt.Sprintf("atollctl_%s_%s_%s", version, runtime.GOOS, runtime.GOARCH))
	program := filepath.Join(dir, "program")
	unpack(t, name+".tar.gz", program)
	u := user{env: environmentOf(t, filepath.Join(dir, modulesFolder))}

	t.Run("the modules and the commit are the same in each folder", func(t *testing.T) {
		again := t.TempDir()
		require.NoError(t, run(t.Context(), []string{"-version", version, "-out", again, "-modules"}, io.Discard))
		require.Equal(t, sums(t, filepath.Join(dir, modulesFolder)), sums(t, filepath.Join(again, modulesFolder)))
		first, err := git(t.Context(), filepath.Join(dir, sourceFolder), "rev-parse", version, "cmd/atollctl/"+version)
		require.NoError(t, err)
		second, err := git(t.Context(), filepath.Join(again, sourceFolder), "rev-parse", version, "cmd/atollctl/"+version)
		require.NoError(t, err)
		require.Equal(t, first, second)
	})
	t.Run("SHA256SUMS", func(t *testing.T) { checksums(t, dir, filepath.Base(name)+".tar.gz", filepath.Base(name)+".cdx.json") })
	t.Run("SBOM", func(t *testing.T) { components(t, name+".cdx.json", program) })
	t.Run("the go command makes the same modules of the tags", func(t *testing.T) { tagged(t, dir) })
	t.Run("go install makes the same program in another folder", func(t *testing.T) {
		target := t.TempDir()
		at := user{env: append(u.env, "GOPATH="+target), dir: t.TempDir()}
		at.run(t, "go", "install", "-trimpath", "-ldflags=-s -w", atollctl+"@"+version)
		installed := filepath.Join(target, "bin", "atollctl")
		require.Equal(t, version+"\n", at.run(t, installed, "version"))
		require.Equal(t, sums(t, dir)["program"], sums(t, filepath.Dir(installed))["atollctl"])
	})
	t.Run("a program imports the library and an adapter", func(t *testing.T) {
		at := u.module(t, root, root+"/adapters/prometheus")
		at.write(t, `package main

import (
	"github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/region"
)

func main() {
	var options atollprometheus.Options
	options.Directory = func() region.Directory { return nil }
	if _, err := atollprometheus.New(options); err != nil {
		panic(err)
	}
}
`)
		at.run(t, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", "program", ".")
		at.run(t, filepath.Join(at.dir, "program"))
		require.Contains(t, at.run(t, "go", "version", "-m", "program"), "dep\t"+root+"/adapters/prometheus\t"+version)
	})
	t.Run("the library needs no other module of the repository", func(t *testing.T) {
		at := u.module(t, root)
		at.write(t, `package main

import (
	_ "github.com/atoll-dev/atoll/fanout"
	_ "github.com/atoll-dev/atoll/router"
	_ "github.com/atoll-dev/atoll/syncer"
)

func main() {}
`)
		packages := at.run(t, "go", "list", "-deps", ".")
		for _, p := range []string{"fanout", "router", "syncer"} {
			require.Contains(t, packages, root+"/"+p+"\n")
		}
		for _, out := range []string{packages, at.run(t, "go", "list", "-m", "all")} {
			require.NotContains(t, out, root+"/adapters")
			require.NotContains(t, out, root+"/cmd")
		}
	})
}

// user runs commands in a folder, in the environment of a user of the release.
type user struct {
	env []string
	dir string
}

// environmentOf returns the environment of a user whose GOPROXY has the release, with an empty module cache.
func environmentOf(t *testing.T, proxy string) []string {
	t.Helper()
	env, err := environment(t.Context(), proxy, t.TempDir())
	require.NoError(t, err)
	return slices.Clip(env)
}

// run returns the standard output of a command that must succeed.
func (u user) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = u.dir, u.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", name, args, &stderr)
	return string(out)
}

// module returns the user in an empty module that requires modules of the release.
func (u user) module(t *testing.T, required ...string) user {
	t.Helper()
	at := user{env: append(u.env, "GOFLAGS=-mod=mod -modcacherw"), dir: t.TempDir()}
	at.run(t, "go", "mod", "init", "example.com/user")
	for i := range required {
		required[i] += "@" + version
	}
	at.run(t, "go", append([]string{"get"}, required...)...)
	return at
}

func (u user) write(t *testing.T, source string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(u.dir, "main.go"), []byte(source), 0o600))
}

// unpack writes the program in an archive to a file, and checks the archive's entries.
func unpack(t *testing.T, archive, file string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := git(t.Context(), ".", "show", "-s", "--format=%ct")
	require.NoError(t, err)
	var names []string
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Equal(t, text, fmt.Sprint(head.ModTime.Unix()), "the time of the commit")
		require.Zero(t, head.Uid+head.Gid)
		names = append(names, head.Name)
		if head.Name == "atollctl" {
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, data, 0o700))
		}
	}
	require.Equal(t, []string{"LICENSE", "atollctl"}, names)
}

// sums returns the hash of each file below dir.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && d.Name() == sourceFolder {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+string(filepath.Separator))] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	require.NotEmpty(t, found)
	return found
}

// checksums compares SHA256SUMS with files, and requires that it lists them and no others.
func checksums(t *testing.T, dir string, files ...string) {
	data, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	require.NoError(t, err)
	present := sums(t, dir)
	var listed []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		sum, file, ok := strings.Cut(s.Text(), "  ")
		require.True(t, ok)
		require.Equal(t, present[file], sum, file)
		listed = append(listed, file)
	}
	require.ElementsMatch(t, files, listed)
}

// components compares an SBOM with the build information of the program.
func components(t *testing.T, file, program string) {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(data), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	require.Equal(t, version, info.Main.Version)
	require.Equal(t, atollctl+" "+version, bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
	require.Equal(t, sums(t, filepath.Dir(program))[filepath.Base(program)], (*bom.Metadata.Component.Hashes)[0].Value)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, bom.SerialNumber)

	expected, listed := []string{"std " + info.GoVersion}, []string{}
	for _, d := range info.Deps {
		require.Nil(t, d.Replace)
		expected = append(expected, d.Path+" "+d.Version)
	}
	require.Contains(t, expected, root+" "+version)
	for _, c := range *bom.Components {
		listed = append(listed, c.Name+" "+c.Version)
	}
	require.Equal(t, expected, listed)
}

// tagged downloads modules of the release from its tags, as a proxy would, and compares them with the published ones.
func tagged(t *testing.T, dir string) {
	env := append(environmentOf(t, dir), "GOPROXY=direct",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+filepath.Join(dir, sourceFolder)+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+root)
	modules := []string{root, root + "/adapters/prometheus", atollctl}
	out := user{env: env, dir: t.TempDir()}.run(t, "go", "mod", "download", "-json",
		modules[0]+"@"+version, modules[1]+"@"+version, modules[2]+"@"+version)
	got := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var m struct{ Path, Sum string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		got[m.Path] = m.Sum
	}
	expected := map[string]string{}
	for _, m := range modules {
		sum, err := dirhash.HashZip(filepath.Join(dir, modulesFolder, filepath.FromSlash(m), "@v", version+".zip"), dirhash.Hash1)
		require.NoError(t, err)
		expected[m] = sum
	}
	require.Equal(t, expected, got)
}
