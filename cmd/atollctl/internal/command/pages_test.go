// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// invocation is a call of atollctl in a line of a shell, up to the end of the command.
var invocation = regexp.MustCompile(`(?:^|[|;(] *|do |\$ )atollctl ((?:"[^"]*"|'[^']*'|[^|;>#)\n])+)`)

// TestPageCommands parses each command line with atollctl in the blocks of all pages: the commands and their flags exist,
// and accept the number of arguments.
func TestPageCommands(t *testing.T) {
	root, parsed := filepath.Join("..", "..", "..", ".."), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		for _, b := range docpage.Blocks(t, path) {
			if b.Language != "sh" && b.Language != "console" && b.Language != "" {
				continue
			}
			for line := range strings.Lines(b.Text) {
				for _, m := range invocation.FindAllStringSubmatch(line, -1) {
					parsed++
					accepts(t, "atollctl", "atollctl "+m[1])
				}
			}
		}
		return nil
	}))
	require.Greater(t, parsed, 50)
}
