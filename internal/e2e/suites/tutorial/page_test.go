// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorial_test

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// step is a block of commands of a page.
type step struct {
	heading  string
	commands string
	output   string // of the block "text" that follows, or empty
	skipped  string // why the commands are not run, or empty
}

const notRun = "<!-- not run: "

// steps returns the blocks of commands of a page in Markdown: those of the language sh. A block of the language text
// right after one has its output. A comment "not run" before one has the reason why it is not run.
func steps(page string) ([]step, error) {
	var all []step
	var heading, skipped, block string
	var text strings.Builder
	last := "" // language of the last block, while no other text followed
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		line := lines.Text()
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case block != "" && fence: // the end of a block
			switch {
			case block == "sh":
				all = append(all, step{heading: heading, commands: text.String(), skipped: skipped})
				skipped = ""
			case block == "text" && last == "sh":
				all[len(all)-1].output = text.String()
			default:
				return nil, fmt.Errorf("%s: a block %q that is not the output of commands", heading, block)
			}
			last, block = block, ""
			text.Reset()
		case block != "":
			text.WriteString(line + "\n")
		case fence && language == "":
			return nil, fmt.Errorf("%s: a block without a language", heading)
		case fence:
			block = language
		case strings.HasPrefix(line, notRun):
			skipped = strings.TrimSuffix(strings.TrimPrefix(line, notRun), " -->")
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimPrefix(line, "## ")
			last = ""
		case line != "":
			last = ""
		}
	}
	if block != "" {
		return nil, fmt.Errorf("%s: a block without an end", heading)
	}
	return all, lines.Err()
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
	const fence = "```"
	all, err := steps(strings.NewReplacer("'''", fence).Replace(`# Page
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
	for _, bad := range []string{"'''sh\nls\n", "'''\nls\n'''\n", "'''text\na\n'''\n", "'''sh\nls\n'''\nthen\n'''text\na\n'''\n", "'''yaml\na: b\n'''\n"} {
		_, err := steps(strings.NewReplacer("'''", fence).Replace(bad))
		require.Error(t, err, bad)
	}
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
