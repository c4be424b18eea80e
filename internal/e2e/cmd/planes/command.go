// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// interruptGrace is how long an interrupted command may take to end.
const interruptGrace = 15 * time.Second

// runCommand runs a command against the planes and returns its exit code. If a signal ended the
// command, the code is 128 plus the number of the signal, as in a shell.
func runCommand(ctx context.Context, command []string, files []kubeconfig) (int, error) {
	args := expand(command, files)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), environment(files))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = interruptGrace
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, nil
	case !ended:
		return 1, fmt.Errorf("running %s: %w", args[0], err)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
