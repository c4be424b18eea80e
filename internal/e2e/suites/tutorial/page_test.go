// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/docpage"
)

// step is a block of commands of a page.
type step struct {
	heading  string
	commands string
	output   string // of the block "text" that follows, or empty
	skipped  string // why the commands are not run, or empty
}

const notRun = "<!-- not run: "

// steps returns the blocks of commands of a page: those of the language sh. A block of the language text right after one
// has its output. A comment "not run" before one has the reason why it is not run.
func steps(blocks []docpage.Block) (all []step, err error) {
	last := "" // language of the block before
	for _, b := range blocks {
		switch {
		case b.Language == "sh":
			all = append(all, step{heading: b.Heading, commands: b.Text, skipped: skipped(b.Between)})
		case b.Language == "text" && last == "sh" && b.Between == "":
			all[len(all)-1].output = b.Text
		default:
			return nil, fmt.Errorf("line %d: a block %q that is not the output of commands", b.Line, b.Language)
		}
		last = b.Language
	}
	return all, nil
}

// skipped returns the reason in the last comment "not run" of a text, or "".
func skipped(text string) (reason string) {
	for line := range strings.Lines(text) {
		if found, ok := strings.CutPrefix(line, notRun); ok {
			reason = strings.TrimSuffix(strings.TrimSpace(found), " -->")
		}
	}
	return reason
}

// matches compares an output with that of the page: "..." in a line stands for any text, and as a line for any lines.
// Spaces count as one, since the widths of columns differ.
func matches(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for line := range strings.Lines(want) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "..." {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		parts := strings.Split(line, "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern.WriteString(strings.Join(parts, `[^\n]*`) + `\n`)
	}
	pattern.WriteString("$")
	var plain strings.Builder
	for line := range strings.Lines(got) {
		plain.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return regexp.MustCompile(pattern.String()).MatchString(plain.String())
}

func TestSteps(t *testing.T) {
	all, err := steps(blocksOf(t, `# Page
## One
<!-- not run: no network -->
'''sh
git clone
'''

'''sh
ls
'''

'''text
a
b
'''
## Two
'''sh
pwd
'''
`))
	require.NoError(t, err)
	require.Equal(t, []step{
		{heading: "One", commands: "git clone\n", skipped: "no network"},
		{heading: "One", commands: "ls\n", output: "a\nb\n"},
		{heading: "Two", commands: "pwd\n"},
	}, all)
	for _, bad := range []string{"'''\nls\n'''\n", "'''text\na\n'''\n", "'''sh\nls\n'''\nthen\n'''text\na\n'''\n", "'''yaml\na: b\n'''\n"} {
		_, err := steps(blocksOf(t, bad))
		require.Error(t, err, bad)
	}
}

// blocksOf returns the blocks of a page, in which three quotes stand for a fence.
func blocksOf(t *testing.T, page string) []docpage.Block {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(page, "'''", "```")), 0o600))
	return docpage.Blocks(t, path)
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		equal     bool
	}{
		{"a  b\n", "a b\n", true},
		{"a b\n", "a   b  \n", true},
		{"a ... c\n", "a b c\n", true},
		{"a ... c\n", "a b\n", false},
		{"...\nz\n", "x\ny\nz\n", true},
		{"...\nz\n", "z\n", true},
		{"...\nz\n", "z\nx\n", false},
		{"a\n...\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"a.c\n", "abc\n", false},
		{"a\n", "", false},
	} {
		require.Equal(t, c.equal, matches(c.want, c.got), "%q %q", c.want, c.got)
	}
}

// Each block of the pages is a step or the output of one. This needs no API servers.
func TestPagesAreSteps(t *testing.T) {
	for _, name := range []string{"tutorial.md", "operate.md"} {
		blocks := len(docpage.Blocks(t, filepath.Join("../../../../docs", name)))
		for _, s := range read(t, name) {
			require.NotEmpty(t, s.heading, name)
			blocks--
			if s.output != "" {
				blocks--
			}
		}
		require.Zero(t, blocks, name)
	}
}
