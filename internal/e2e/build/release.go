// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// FirstRelease is the commit of this repository that was released first.
const FirstRelease = "63c2c3e8fb3faeedd5982abd0cb6127b8d3f13cc"

// ErrNoSource means that the source of a release is unavailable: the tests do not run in a git
// repository, or the repository lacks the commit, as a shallow clone does.
var ErrNoSource = errors.New("source of the release is unavailable")

// Release returns the path of a program at a commit of this repository. folder names the program,
// such as examples/atollctl. If the commit lacks the folder, Release builds the folder of the
// present tree against the commit's library.
//
// It builds the program once, into the user's cache, as [Programs] does, and blocks until the
// executable exists or ctx ends. It is idempotent and safe for concurrent use, also by several
// processes. If the commit is unavailable, the error wraps [ErrNoSource].
func Release(ctx context.Context, commit, folder string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	r := release{root: filepath.Join(filepath.Dir(file), "..", "..", ".."), commit: commit, folder: folder}
	path, err := r.program(ctx)
	if err != nil {
		return "", fmt.Errorf("building %s of commit %s: %w", folder, commit, err)
	}
	return path, nil
}

// release is a program at an earlier commit of the repository in root.
type release struct {
	root, commit, folder string
	cache                string // empty: the user's cache
}

func (r release) program(ctx context.Context) (string, error) {
	if err := r.git(ctx, nil, "cat-file", "-e", r.commit+"^{commit}"); err != nil {
		return "", fmt.Errorf("%w: git fetch --unshallow gets it: %w", ErrNoSource, err)
	}
	c := &cache{module: filepath.Join(r.root, "internal", "e2e", "programs"), log: os.Stderr}
	key, err := r.key(ctx, c)
	if err != nil {
		return "", err
	}
	base := r.cache
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the user's cache directory: %w", err)
		}
		base = filepath.Join(user, "atoll", "e2e")
	}
	c.dir = filepath.Join(base, "release-"+key)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, filepath.Base(r.folder))
	if executable(path) {
		return path, nil
	}
	return path, c.once(ctx, path, func(piece string) error {
		tree := filepath.Join(filepath.Dir(piece), "tree")
		if err := r.checkout(ctx, tree); err != nil {
			return err
		}
		c.module = filepath.Join(tree, r.folder)
		return c.compile(ctx, program{name: filepath.Base(r.folder), pkg: ".", usual: time.Minute}, piece)
	})
}

// lacks reports whether the commit lacks the folder.
func (r release) lacks(ctx context.Context) bool {
	return r.git(ctx, nil, "cat-file", "-e", r.commit+":"+filepath.ToSlash(r.folder)) != nil
}

// key returns a hash of the commit, the name of the folder, and the toolchain with its target. If
// the commit lacks the folder, the hash also covers the Go files that the folder has in the present
// tree.
func (r release) key(ctx context.Context, c *cache) (string, error) {
	hash := sha256.New()
	toolchain, err := c.goOutput(ctx, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(hash, "%s %s\n%s", r.commit, r.folder, toolchain)
	if r.lacks(ctx) {
		files, err := filepath.Glob(filepath.Join(r.root, r.folder, "*.go"))
		if err != nil {
			return "", err
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(f), len(content), content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// checkout writes the commit's files below dir, and adds the folder of the present tree if the
// commit lacks the folder. It uses an index of its own, so that the repository does not change.
func (r release) checkout(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(filepath.Dir(dir), "index")}
	if err := r.git(ctx, index, "read-tree", r.commit); err != nil {
		return err
	}
	if err := r.git(ctx, index, "checkout-index", "--all", "--prefix="+dir+"/"); err != nil {
		return err
	}
	if r.lacks(ctx) {
		return os.CopyFS(filepath.Join(dir, r.folder), os.DirFS(filepath.Join(r.root, r.folder)))
	}
	return nil
}

func (r release) git(ctx context.Context, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, tail(string(output), 5))
	}
	return nil
}
