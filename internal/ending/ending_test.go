// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ending_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/ending"
)

// TestMain runs the tests. If the environment variable ATOLL_ENDING is set, it is instead a program
// that waits for a signal.
func TestMain(m *testing.M) {
	if os.Getenv("ATOLL_ENDING") == "" {
		os.Exit(m.Run())
	}
	ctx := ending.Context(context.Background())
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("ended")
}

// A program with Context ends at the first SIGINT, SIGTERM or SIGHUP; under nohup it ignores SIGHUP.
// The test catches SIGHUP itself: otherwise, if the test runs under nohup, the programs that it
// starts would ignore SIGHUP, too.
func TestSignals(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	for _, tt := range []struct {
		name string
		sent []syscall.Signal
		code string // shell code that starts it; it may ignore SIGHUP
	}{
		{"SIGINT", []syscall.Signal{syscall.SIGINT}, `exec "$0"`},
		{"SIGTERM", []syscall.Signal{syscall.SIGTERM}, `exec "$0"`},
		{"SIGHUP", []syscall.Signal{syscall.SIGHUP}, `exec "$0"`},
		{"SIGHUP under nohup", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, `trap "" HUP; exec "$0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			program := exec.CommandContext(t.Context(), "sh", "-c", tt.code, os.Args[0])
			program.Env = append(os.Environ(), "ATOLL_ENDING=1")
			out, err := program.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, program.Start())
			lines := bufio.NewScanner(out)
			require.True(t, lines.Scan())
			require.Equal(t, "ready", lines.Text())
			for _, s := range tt.sent {
				require.NoError(t, program.Process.Signal(s))
			}
			require.True(t, lines.Scan(), "it is killed instead of ending")
			require.Equal(t, "ended", lines.Text())
			require.NoError(t, program.Wait())
		})
	}
}

// Each program of the examples and of cmd uses Context. The example thirdparty cannot import internal
// packages, so it contains a copy of the code of Context.
func TestEachProgramEndsSo(t *testing.T) {
	mains, err := filepath.Glob("../../examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, mains)
	more, err := filepath.Glob("../../cmd/*/main.go")
	require.NoError(t, err)
	for _, path := range append(mains, more...) {
		code, err := os.ReadFile(path)
		require.NoError(t, err)
		if filepath.Base(filepath.Dir(path)) == "thirdparty" {
			require.Contains(t, string(code), "os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)", path)
			continue
		}
		require.Contains(t, string(code), "ending.Context(", path)
	}
}
