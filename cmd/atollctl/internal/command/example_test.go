// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// Each command has examples that it accepts, under the name by which it was called, and there are no others.
func TestExamples(t *testing.T) {
	for _, program := range []string{"atollctl", "kubectl atoll"} {
		unused := examples()
		var visit func(*cobra.Command)
		visit = func(c *cobra.Command) {
			path := strings.TrimPrefix(c.CommandPath(), program+" ")
			if !c.HasSubCommands() {
				require.NotEmpty(t, c.Example, c.CommandPath())
			}
			for line := range strings.Lines(c.Example) {
				accepts(t, program, strings.TrimSpace(line))
			}
			delete(unused, path)
			for _, below := range c.Commands() {
				visit(below)
			}
		}
		s := &session{program: program}
		visit(s.root())
		require.Empty(t, unused)
	}
}

// accepts requires that a command line names a command, and that the command accepts its flags and the number of its
// arguments.
func accepts(t *testing.T, program, line string) {
	t.Helper()
	rest, ok := strings.CutPrefix(line, program+" ")
	require.True(t, ok, line)
	s := &session{program: program}
	c, args, err := s.root().Find(strings.Fields(rest))
	require.NoError(t, err, line)
	require.True(t, c.Runnable(), line)
	require.NoError(t, c.ParseFlags(args), line)
	require.NoError(t, c.ValidateArgs(c.Flags().Args()), line)
	require.NoError(t, c.ValidateRequiredFlags(), line)
}
