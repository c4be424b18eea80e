// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newRepository creates a repository with two commits, and returns the first commit. The second
// commit changes the library and adds the program "other".
func newRepository(t *testing.T) (root, commit string) {
	t.Helper()
	root = t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = root
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return strings.TrimSpace(string(output))
	}
	for _, dir := range []string{"hello", "other", filepath.Join("internal", "e2e", "programs")} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	git("init", "--quiet")
	write(t, filepath.Join(root, "go.mod"), "module example.com/hello\n\ngo 1.26\n", 0o644)
	write(t, filepath.Join(root, "name.go"), "package hello\n\nconst Name = \"first\"\n", 0o644)
	write(t, filepath.Join(root, "hello", "main.go"), greeting, 0o644)
	git("add", ".")
	git("commit", "--quiet", "-m", "first")
	commit = git("rev-parse", "HEAD")
	write(t, filepath.Join(root, "name.go"), "package hello\n\nconst Name = \"second\"\n", 0o644)
	write(t, filepath.Join(root, "other", "main.go"), greeting, 0o644)
	git("add", ".")
	git("commit", "--quiet", "-m", "second")
	return root, commit
}

const greeting = "package main\n\nimport hello \"example.com/hello\"\n\nfunc main() { print(hello.Name) }\n"

// The program is built from the commit's files. A program that the commit lacks is built from the
// present tree, against the commit's library.
func TestRelease(t *testing.T) {
	root, commit := newRepository(t)
	cache := t.TempDir()
	for _, folder := range []string{"hello", "other"} {
		r := release{root: root, commit: commit, folder: folder, cache: cache}
		path, err := r.program(t.Context())
		require.NoError(t, err)
		output, err := exec.CommandContext(t.Context(), path).CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, "first", string(output))
		again, err := r.program(t.Context())
		require.NoError(t, err)
		require.Equal(t, path, again)
	}
	cmd := exec.CommandContext(t.Context(), "git", "status", "--porcelain")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(output), "the repository changed")
}

func TestReleaseWithoutItsCommit(t *testing.T) {
	root, _ := newRepository(t)
	_, err := release{root: root, commit: strings.Repeat("1", 40), folder: "hello", cache: t.TempDir()}.program(t.Context())
	require.ErrorIs(t, err, ErrNoSource)
}
