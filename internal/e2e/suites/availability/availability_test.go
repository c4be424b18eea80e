// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package availability_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestMain(m *testing.M) { os.Exit(planetest.Run(m)) }

// The example must exit with 0: then the samples kept the budget and the limit of pods, and all its objects are
// removed. The grace period is longer than a busy machine pauses a process.
func TestAvailability(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	dir := t.TempDir()
	program, picture := filepath.Join(dir, "availability"), filepath.Join(dir, "availability.svg")
	if docs := os.Getenv("ATOLL_DOCS"); docs != "" {
		picture = filepath.Join(docs, "..", "images", "availability.svg")
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/availability")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	options := []plane.Options{plane.Upstream()}
	for _, name := range []string{"cluster-1", "cluster-2", "cluster-3"} {
		options = append(options, plane.Options{Name: name, Pods: true, Nodes: 2})
	}
	args := []string{"-grace", "20s", "-chart", picture}
	for _, p := range planetest.NewAll(t, options...) {
		file := filepath.Join(dir, p.Name()+".kubeconfig")
		require.NoError(t, os.WriteFile(file, p.Kubeconfig(), 0o600))
		args = append(args, "-kubeconfig", p.Name()+"="+file)
	}
	out, err = exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "The samples kept the budget and the limit of pods")
	require.Contains(t, string(out), "Nothing is left, upstream or in any cluster.")
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(svg), "8. load falls")
}
