// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Build compiles the program whose module is in the given folder, and returns its path.
func Build(t testing.TB, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(folder))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// Output runs a program to its end, requires the exit code 0, and returns its standard output.
func Output(t testing.TB, program string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return string(out)
}

// Process is a running program. It is safe for concurrent use.
type Process struct {
	Log  *Log
	stop func()
}

// Start runs a program until Stop, or the end of the test, interrupts it. env is added to the environment. The log of a
// failed test has the program's output, after the given name.
func Start(t testing.TB, name string, env []string, program string, args ...string) *Process {
	t.Helper()
	p := &Process{Log: &Log{}}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	require.NoError(t, cmd.Start())
	p.stop = sync.OnceFunc(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", p.Log)
	})
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.Log)
		}
	})
	return p
}

// Stop interrupts the program as Kubernetes does, and requires the exit code 0. It may be repeated.
func (p *Process) Stop() { p.stop() }

// Entry returns the first line of the log with the given message, in the form of slog's JSON.
func (p *Process) Entry(message string) (map[string]any, error) {
	for line := range strings.Lines(p.Log.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == message {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("the log has no line %q yet", message)
}

// Log collects the output of a program, for concurrent readers.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the output so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
