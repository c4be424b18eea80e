// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// Program is the atollctl of one release.
type Program struct {
	Name  string
	path  string
	flags []string // added to each run
}

// Present builds atollctl of the present tree.
func Present(t *testing.T) Program {
	t.Helper()
	p := Program{Name: "present", path: filepath.Join(t.TempDir(), "atollctl"), flags: []string{"--create-wal"}}
	Build(t, p.path, "cmd", "atollctl")
	return p
}

// First builds atollctl of the first release. It skips the test if the repository lacks its source.
func First(t *testing.T) Program {
	t.Helper()
	return Program{Name: "first", path: OfFirst(t, "examples", "atollctl")}
}

// Build builds the program in a folder of the present tree. It writes the executable to path.
func Build(t *testing.T, path string, folder ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(append([]string{"..", "..", "..", ".."}, folder...)...)
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// OfFirst builds the program in a folder with the library of the first release, and returns its
// path. It skips the test if the repository lacks the source of the first release.
func OfFirst(t *testing.T, folder ...string) string {
	t.Helper()
	planetest.SkipShort(t)
	path, err := build.Release(t.Context(), build.FirstRelease, filepath.Join(folder...))
	if errors.Is(err, build.ErrNoSource) {
		t.Skipf("the first release cannot be built: %v", err)
	}
	require.NoError(t, err)
	return path
}
