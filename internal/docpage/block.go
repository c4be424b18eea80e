// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package docpage

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Block is a fenced block of code of a page.
type Block struct {
	Line     int    // of the fence, from 1
	Language string // of the fence, such as "sh"; may be empty
	Before   string // the line above the fence
	Heading  string // the last heading of level 2 above the fence, without its mark
	Between  string // the lines between the block before and this one, without empty lines
	Text     string // with a newline after each line
}

// Blocks returns the blocks of the Markdown page at path, in their order. It fails the test if the page cannot be read or
// a block does not end.
func Blocks(t testing.TB, path string) []Block {
	t.Helper()
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	var blocks []Block
	var open *Block
	before, heading, between, n := "", "", "", 0
	for line := range strings.Lines(string(page)) {
		n++
		text := strings.TrimRight(line, "\r\n")
		switch {
		case open == nil && strings.HasPrefix(text, "```"):
			open = &Block{Line: n, Language: strings.TrimPrefix(text, "```"), Before: before, Heading: heading, Between: between}
			between = ""
		case open != nil && text == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += text + "\n"
		case text != "":
			between += text + "\n"
			if h, ok := strings.CutPrefix(text, "## "); ok {
				heading = h
			}
		}
		before = text
	}
	require.Nil(t, open, "%s: a block does not end", path)
	return blocks
}
