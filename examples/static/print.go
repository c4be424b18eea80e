// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
)

// narrator prints chapters.
type narrator struct {
	w        io.Writer
	chapters int
}

func (n *narrator) say(text string) { _, _ = fmt.Fprintln(n.w, text) }

func (n *narrator) chapter(title string) {
	n.chapters++
	n.say(fmt.Sprintf("\n%d. %s", n.chapters, title))
}

func (n *narrator) note(format string, args ...any) { n.say("   " + fmt.Sprintf(format, args...)) }

// row prints a row about one peer.
func (n *narrator) row(peer any, cells ...string) {
	n.note("  %-9v %s", peer, strings.Join(cells, "  "))
}
