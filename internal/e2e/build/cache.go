// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// cache is the directory of the executables built from one set of versions.
type cache struct {
	dir    string
	module string
	log    io.Writer
}

// open returns the cache of the module in the folder of the builder's module. It creates the
// cache's directory, whose name is a hash of the module's versions.
func (b *builder) open(ctx context.Context, folder string) (*cache, error) {
	c := &cache{module: b.module, log: b.log}
	if c.module == "" {
		module, err := pinnedModule(ctx)
		if err != nil {
			return nil, err
		}
		c.module = module
	}
	c.module = filepath.Join(c.module, folder)
	base := b.cache
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the user's cache directory: %w", err)
		}
		base = filepath.Join(user, "atoll", "e2e")
	}
	key, err := c.key(ctx)
	if err != nil {
		return nil, err
	}
	c.dir = filepath.Join(base, key)
	return c, os.MkdirAll(c.dir, 0o755)
}

// key returns a hash of the pinned modules and of the Go toolchain with its target. The hash does
// not cover the edit of a program.
func (c *cache) key(ctx context.Context) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(c.module, name))
		if err != nil && !(name == "go.sum" && errors.Is(err, os.ErrNotExist)) {
			return "", fmt.Errorf("reading the pinned versions: %w", err)
		}
		_, _ = fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	toolchain, err := c.goOutput(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(hash, toolchain)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// once lets one of all concurrent callers create the file at path. The function make writes the
// file under another name, and once renames it, so a file at path is always complete.
func (c *cache) once(ctx context.Context, path string, make func(piece string) error) error {
	unlock, err := lock(ctx, path+".lock", func() {
		c.say("%s: another process is building it; waiting", filepath.Base(path))
	})
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	// A killed process leaves partial files, and perhaps a compiler that still writes to them. So
	// each build uses a new directory.
	pieces, err := filepath.Glob(path + ".partial-*")
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		_ = os.RemoveAll(piece)
	}
	partial, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".partial-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }()
	piece := filepath.Join(partial, filepath.Base(path))
	if err := make(piece); err != nil {
		return err
	}
	return os.Rename(piece, path)
}

// ldflags returns the linker flags of p. They strip symbols, and set the version of Kubernetes
// programs, which go build alone would leave at v0.0.0-master.
func (c *cache) ldflags(ctx context.Context, p program) (string, error) {
	flags := "-s -w"
	if p.version != "k8s.io/kubernetes" {
		return flags, nil
	}
	version, err := c.goOutput(ctx, "list", "-m", "-f", "{{.Version}}", p.version)
	if err != nil {
		return "", err
	}
	number := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(number) != 3 {
		return "", fmt.Errorf("version %q of %s: want vMAJOR.MINOR.PATCH", version, p.version)
	}
	const stamp = " -X k8s.io/component-base/version."
	return flags + stamp + "gitVersion=" + version + stamp + "gitMajor=" + number[0] + stamp + "gitMinor=" + number[1], nil
}

// goOutput runs the go command and returns its output.
func (c *cache) goOutput(ctx context.Context, args ...string) (string, error) {
	output, err := c.goCommand(ctx, args...).Output()
	if err != nil {
		var stderr string
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			stderr = ": " + tail(string(exit.Stderr), 5)
		}
		return "", fmt.Errorf("go %s: %w%s", strings.Join(args, " "), err, stderr)
	}
	return strings.TrimSpace(string(output)), nil
}

// pinnedModule returns the directory of the module internal/e2e/programs.
func pinnedModule(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		dir := filepath.Join(filepath.Dir(filepath.Dir(file)), "programs")
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	// A program that was built with -trimpath does not contain the path of its source. The go
	// command finds the module on disk.
	const module = "github.com/atoll-dev/atoll/internal/e2e"
	dir, err := (&cache{}).goOutput(ctx, "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", module, err)
	}
	return filepath.Join(dir, "programs"), nil
}
