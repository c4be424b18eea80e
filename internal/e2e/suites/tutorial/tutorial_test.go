// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/internal/e2e/build"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// TestTutorial enters the commands of the tutorial.
func TestTutorial(t *testing.T) {
	sh, dir := enter(t)
	sh.play(t, read(t, "tutorial.md"))
	require.NoDirExists(t, filepath.Join(dir, "atoll-tutorial"), "the last step cleans up")
}

// TestOperate enters the commands of the page about the operation of a ring, after those of the tutorial that it
// continues.
func TestOperate(t *testing.T) {
	var begin []step
	for _, s := range read(t, "tutorial.md") {
		if s.heading < "6" {
			s.commands = strings.ReplaceAll(s.commands, "planes -n 3", "planes -n 4")
			s.output = "" // TestTutorial compares it
			begin = append(begin, s)
		}
	}
	require.Contains(t, begin[len(begin)-1].commands, "atollctl audit")
	sh, _ := enter(t)
	sh.play(t, begin)
	sh.play(t, read(t, "operate.md"))
}

// read returns the steps of a page in docs.
func read(t *testing.T, name string) []step {
	t.Helper()
	all, err := steps(docpage.Blocks(t, filepath.Join("../../../../docs", name)))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// enter starts a shell in an empty directory, with kubectl, and with the checkout as ATOLL.
func enter(t *testing.T) (sh *shell, dir string) {
	t.Helper()
	planetest.SkipShort(t)
	for _, name := range []string{"bash", "curl", "openssl", "pkill"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the pages need %s, which this machine lacks", name)
		}
	}
	checkout, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // the first build takes minutes
	defer cancel()
	programs, err := build.Programs(ctx, build.Kubectl, build.Etcd, build.APIServer)
	require.NoError(t, err)
	dir = t.TempDir()
	tools := filepath.Join(dir, "tools")
	require.NoError(t, os.Mkdir(tools, 0o755))
	require.NoError(t, os.Symlink(programs[build.Kubectl], filepath.Join(tools, "kubectl")))
	return newShell(t, dir, "ATOLL="+checkout, "KUBECONFIG=", "ATOLL_CONFIG=", "PATH="+tools+":"+os.Getenv("PATH")), dir
}

// play enters the commands of each step. They end with exit code 0, and print what the page says.
func (s *shell) play(t *testing.T, all []step) {
	t.Helper()
	var ran, compared int
	for _, step := range all {
		if step.skipped != "" {
			t.Logf("%s: not run: %s", step.heading, step.skipped)
			continue
		}
		begin := time.Now()
		output, code, err := s.run(step.commands)
		require.NoError(t, err, "%s\n%s\n%s", step.heading, step.commands, output)
		require.Zero(t, code, "%s\n%s\n%s", step.heading, step.commands, output)
		ran++
		if step.output != "" {
			require.True(t, matches(step.output, output), "%s\n%s\nwant:\n%s\ngot:\n%s", step.heading, step.commands, step.output, output)
			compared++
		}
		t.Logf("%s: %s", step.heading, time.Since(begin).Round(time.Millisecond))
	}
	t.Logf("%d blocks ran, the output of %d was compared", ran, compared)
	require.Positive(t, ran)
}
