// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// shell is a bash to which commands are entered one after the other.
type shell struct {
	input  io.Writer
	output *bufio.Reader
}

// newShell starts a shell in dir, and kills it with all its processes when the test ends.
func newShell(t *testing.T, dir string, env ...string) *shell {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = writer, writer
	require.NoError(t, cmd.Start())
	require.NoError(t, writer.Close())
	t.Cleanup(func() {
		_ = input.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // the program planes stops its planes
		_ = cmd.Wait()                                      // its code is that of the last command
		_ = reader.Close()
	})
	return &shell{input: input, output: bufio.NewReader(reader)}
}

// run enters commands, and returns their output and the exit code of the last one.
func (s *shell) run(commands string) (output string, code int, err error) {
	const end = "end of the commands:"
	if _, err := fmt.Fprintf(s.input, "%s\nprintf '\\n%s%%d\\n' $?\n", strings.TrimSpace(commands), end); err != nil {
		return "", 0, err
	}
	var text strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			return text.String(), 0, fmt.Errorf("the shell ended: %w", err)
		}
		if found, ok := strings.CutPrefix(line, end); ok {
			_, err := fmt.Sscanf(found, "%d", &code)
			return strings.TrimSuffix(text.String(), "\n"), code, err
		}
		text.WriteString(line)
	}
}
