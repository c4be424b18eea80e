// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// program is a built program.
type program struct {
	name, goos, goarch string
	data               []byte
	info               *buildinfo.BuildInfo
}

// file returns the name of the executable.
func (p *program) file() string {
	if p.goos == "windows" {
		return p.name + ".exe"
	}
	return p.name
}

// build builds programs from the modules of the release, and writes their archives, SBOMs and checksums.
func (r *release) build(ctx context.Context, names, platforms []string) error {
	cache, err := os.MkdirTemp("", "release-") // a cache of its own: the version may be another commit's in that of the user
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(cache) }()
	license, err := os.ReadFile(filepath.Join(r.dir, sourceFolder, "LICENSE"))
	if err != nil {
		return err
	}
	for _, name := range names {
		for _, platform := range platforms {
			p, err := r.install(ctx, cache, name, platform)
			if err != nil {
				return fmt.Errorf("program %s for %s: %w", name, platform, err)
			}
			if err := r.write(p, license); err != nil {
				return fmt.Errorf("program %s for %s: %w", name, platform, err)
			}
		}
	}
	return checksum(r.dir)
}

// install builds a program as a user installs it: the version in the program is that of its module.
func (r *release) install(ctx context.Context, cache, name, platform string) (*program, error) {
	i := slices.IndexFunc(r.modules, func(m *module) bool { return m.folder == "cmd/"+name })
	goos, goarch, ok := strings.Cut(platform, "/")
	if i < 0 || !ok {
		return nil, errors.New("no module cmd/" + name + ", or the platform is not OS/ARCH")
	}
	m := r.modules[i]
	env, err := environment(ctx, filepath.Join(r.dir, modulesFolder), cache)
	if err != nil {
		return nil, err
	}
	target, err := os.MkdirTemp(cache, "go-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(target) }()
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", m.path+"@"+r.version)
	cmd.Dir = target
	cmd.Env = slices.Concat(env, []string{"GOOS=" + goos, "GOARCH=" + goarch, "GOPATH=" + target})
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go install: %w: %s", err, text)
	}
	p := &program{name: name, goos: goos, goarch: goarch}
	// The go command adds a folder for the platform if it is not the machine's.
	for _, folder := range []string{"bin", filepath.Join("bin", goos+"_"+goarch)} {
		if p.data, err = os.ReadFile(filepath.Join(target, folder, p.file())); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if p.info, err = buildinfo.Read(bytes.NewReader(p.data)); err != nil {
		return nil, err
	}
	return p, r.verify(p.info, filepath.Join(r.dir, sourceFolder, filepath.FromSlash(m.folder), "go.sum"))
}

// verify fails if a module in a program has another hash than in the program's go.sum.
func (r *release) verify(info *buildinfo.BuildInfo, file string) error {
	sums, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(sums), "\n")
	for _, d := range info.Deps {
		if line := d.Path + " " + d.Version + " " + d.Sum; d.Replace != nil || !slices.Contains(lines, line) {
			return fmt.Errorf("the program contains a module that is not in %s: %s", file, line)
		}
	}
	return nil
}

// environment returns the environment of a go command that finds the modules in the folder proxy, and all others where
// the user's go command finds them. It does not depend on other settings of the user.
func environment(ctx context.Context, proxy, cache string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOPROXY", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	user := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(user) != 3 {
		return nil, fmt.Errorf("go env: unexpected output %q", out)
	}
	local := filepath.ToSlash(filepath.Join(user[1], "cache", "download"))
	return append(os.Environ(),
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "GOEXPERIMENT=", "GOAMD64=", "GOARM64=", "GOTOOLCHAIN=local", "GOBIN=", "CGO_ENABLED=0",
		"GOMODCACHE="+cache, "GOCACHE="+user[2], "GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+local+","+user[0],
		"GOSUMDB=off", // the tags are not public yet; verify compares with go.sum
	), nil
}
