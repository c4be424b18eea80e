// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestTutorial enters the commands of the tutorial in one shell. Each block ends with exit code 0, and prints what the
// page says.
func TestTutorial(t *testing.T) {
	planetest.SkipShort(t)
	page, err := os.ReadFile("../../../../docs/tutorial.md")
	require.NoError(t, err)
	all, err := steps(string(page))
	require.NoError(t, err)
	checkout, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build takes minutes
	defer cancel()
	programs, err := build.Programs(ctx, build.Kubectl, build.Etcd, build.APIServer)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tools"), 0o755))
	require.NoError(t, os.Symlink(programs[build.Kubectl], filepath.Join(dir, "tools", "kubectl")))
	sh := newShell(t, dir, "ATOLL="+checkout, "KUBECONFIG=", "ATOLL_CONFIG=", "PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"))

	var ran, compared int
	for _, s := range all {
		if s.skipped != "" {
			t.Logf("%s: not run: %s", s.heading, s.skipped)
			continue
		}
		begin := time.Now()
		output, code, err := sh.run(s.commands)
		require.NoError(t, err, "%s\n%s\n%s", s.heading, s.commands, output)
		require.Zero(t, code, "%s\n%s\n%s", s.heading, s.commands, output)
		if s.output != "" {
			require.True(t, matches(s.output, output), "%s\n%s\nwant:\n%s\ngot:\n%s", s.heading, s.commands, s.output, output)
			compared++
		}
		ran++
		t.Logf("%s: %s", s.heading, time.Since(begin).Round(time.Millisecond))
	}
	t.Logf("%d blocks ran, the output of %d was compared", ran, compared)
	require.Greater(t, ran, 15)
	require.NoDirExists(t, filepath.Join(dir, "atoll-tutorial"), "the last step cleans up")
}
