// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The exit codes of atollctl.
const (
	Done     = 0
	Failed   = 1
	Input    = 2
	Conflict = 3
	Doubt    = 4
	// Killed means that the process was killed and has no exit code.
	Killed = -1
)

// Shell runs atollctl with one log. Its methods are safe for concurrent use, but only one process
// at a time may use a log.
type Shell struct {
	binary string
	flags  []string
}

// With returns the same shell with more flags.
func (s *Shell) With(flags ...string) *Shell {
	return &Shell{binary: s.binary, flags: slices.Concat(s.flags, flags)}
}

// Result is the outcome of one run.
type Result struct {
	Args   []string
	Code   int
	Output string
	Took   time.Duration
}

func (r Result) String() string {
	end := fmt.Sprintf("exit code %d", r.Code)
	if r.Code == Killed {
		end = "killed"
	}
	return fmt.Sprintf("atollctl %s: %s after %s\n%s", strings.Join(r.Args, " "), end, r.Took.Round(time.Millisecond), r.Output)
}

// Never is the argument kill with which Run does not kill the program.
const Never = time.Duration(0)

// Run runs the program, and kills it if it has not ended after the duration kill, unless kill is
// Never. Run fails only if the program cannot be started.
func (s *Shell) Run(ctx context.Context, kill time.Duration, args ...string) (Result, error) {
	return s.run(ctx, kill, "", args)
}

// RunUntil runs the program, and kills it as soon as its output contains printed. RunUntil fails
// only if the program cannot be started.
func (s *Shell) RunUntil(ctx context.Context, printed string, args ...string) (Result, error) {
	return s.run(ctx, Never, printed, args)
}

func (s *Shell) run(ctx context.Context, kill time.Duration, printed string, args []string) (Result, error) {
	cmd := exec.CommandContext(ctx, s.binary, append(args, s.flags...)...)
	output := &output{until: printed, kill: func() { _ = cmd.Process.Kill() }}
	cmd.Stdout, cmd.Stderr = output, output
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	if kill != Never {
		timer := time.AfterFunc(kill, output.kill)
		defer timer.Stop()
	}
	err := cmd.Wait()
	result := Result{Args: args, Output: output.text.String(), Took: time.Since(start)}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		result.Code = Killed
		if exit.Exited() {
			result.Code = exit.ExitCode()
		}
		err = nil
	}
	return result, err
}

// output collects the output of a process, and kills the process when the output contains until.
// With an empty until it kills nothing.
type output struct {
	text  strings.Builder
	until string
	kill  func()
}

func (o *output) Write(p []byte) (int, error) {
	o.text.Write(p)
	if o.until != "" && strings.Contains(o.text.String(), o.until) {
		o.kill()
	}
	return len(p), nil
}

// End runs the program to its end.
func (s *Shell) End(t *testing.T, args ...string) Result {
	t.Helper()
	result, err := s.Run(t.Context(), Never, args...)
	require.NoError(t, err)
	return result
}

// Succeed runs the program, requires exit code 0, and returns how long it took.
func (s *Shell) Succeed(t *testing.T, args ...string) time.Duration {
	t.Helper()
	result := s.End(t, args...)
	require.Equal(t, Done, result.Code, "%s", result)
	return result.Took
}

// patience is how long the method answered repeats a command while a running peer does not respond.
// The machine may be busy with other work.
const patience = 3 * time.Minute

// Recover runs "wal recover" and returns its result. If the output reports a peer without an
// answer, which on a busy machine may be a mere delay, it runs the command again, as the output
// advises.
func (s *Shell) Recover(t *testing.T) Result {
	t.Helper()
	runs := s.answered(t, func(r Result) bool {
		return r.Code != Doubt || !strings.Contains(r.Output, "no answer from ")
	}, "wal", "recover")
	return runs[len(runs)-1]
}

// Audit runs "audit" and returns the output of all its runs. It repeats the command while the exit
// code shows that a peer could not be read, and requires exit code 0 of the last run.
func (s *Shell) Audit(t *testing.T, flags ...string) string {
	t.Helper()
	runs := s.answered(t, func(r Result) bool { return r.Code != Doubt }, append([]string{"audit"}, flags...)...)
	require.Equal(t, Done, runs[len(runs)-1].Code, "%s", runs)
	var printed strings.Builder
	for _, r := range runs {
		printed.WriteString(r.Output)
	}
	return printed.String()
}

// answered runs the program until the function all reports that every peer responded, or patience
// has passed. It returns all results.
func (s *Shell) answered(t *testing.T, all func(Result) bool, args ...string) (runs []Result) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		result := s.End(t, args...)
		runs = append(runs, result)
		if all(result) || time.Now().After(deadline) {
			return runs
		}
		t.Logf("%s", result)
	}
}
