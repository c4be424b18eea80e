// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/build"
)

// kubectl runs the pinned kubectl.
type kubectl struct {
	program, kubeconfig, cache string
	env                        []string
}

// patience is the timeout of one kubectl command, so that the log names a command that hangs.
const patience = 2 * time.Minute

func (g *gateway) kubectl(t *testing.T, path, token string, env ...string) kubectl {
	t.Helper()
	programs, err := build.Programs(t.Context(), build.Kubectl)
	require.NoError(t, err)
	return kubectl{program: programs[build.Kubectl], kubeconfig: g.kubeconfig(t, path, token), cache: t.TempDir(), env: env}
}

func (k kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.program, append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", k.cache}, args...)...)
	cmd.Env = append(os.Environ(), k.env...)
	return cmd
}

// run returns the output of kubectl, and an error if kubectl failed.
func (k kubectl) run(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := k.command(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must runs kubectl, and fails the test if kubectl fails.
func (k kubectl) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := k.run(t, stdin, args...)
	require.NoError(t, err, "kubectl %s:\n%s", strings.Join(args, " "), out)
	return out
}

// refused runs kubectl, and requires that kubectl fails and prints these words.
func (k kubectl) refused(t *testing.T, words, stdin string, args ...string) {
	t.Helper()
	out, err := k.run(t, stdin, args...)
	require.Error(t, err, "kubectl %s succeeded:\n%s", strings.Join(args, " "), out)
	require.Contains(t, out, words)
}

// start runs kubectl until the test ends or stop is called, and returns its output.
func (k kubectl) start(t *testing.T, args ...string) (lines *bufio.Reader, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := k.command(ctx, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait() // an error: the process was killed
		}
	}
	t.Cleanup(stop)
	return bufio.NewReader(out), stop
}

func next(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSuffix(line, "\n")
}
