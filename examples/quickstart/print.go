// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// narrator prints the story for people: chapters of aligned rows.
type narrator struct {
	w        io.Writer
	color    bool
	chapters int
	rows     []string // not printed yet; cells are separated by tabs
}

// newNarrator returns a narrator that prints to w, in color if that is a terminal and NO_COLOR is
// not set.
func newNarrator(w io.Writer) *narrator {
	return &narrator{w: w, color: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

// chapter prints a title, the output of tell, and one line about why the chapter's operation is
// safe.
func (n *narrator) chapter(title, safe string, tell func() error) error {
	n.chapters++
	n.say("")
	n.line(bold, fmt.Sprintf("%d. %s", n.chapters, title))
	begin := time.Now()
	err := tell()
	n.flush()
	if err != nil {
		n.line(red, "   This failed.")
		return fmt.Errorf("chapter %d, %s: %w", n.chapters, title, err)
	}
	n.line(dim, "   Safe: "+safe)
	n.line(dim, fmt.Sprintf("   (%s)", took(begin)))
	return nil
}

// row adds a row of cells. Adjacent rows are aligned.
func (n *narrator) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	n.rows = append(n.rows, strings.Join(texts, "\t"))
}

// note prints a line within a chapter. It aligns the rows before the line separately from the rows
// after it.
func (n *narrator) note(format string, args ...any) {
	n.flush()
	n.line("", "   "+fmt.Sprintf(format, args...))
}

// say prints a line without indentation.
func (n *narrator) say(text string) {
	n.flush()
	n.line("", text)
}

func (n *narrator) line(style, text string) {
	if n.color && style != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	_, _ = fmt.Fprintln(n.w, text)
}

// flush prints the collected rows.
func (n *narrator) flush() {
	var aligned bytes.Buffer
	table := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range n.rows {
		_, _ = fmt.Fprintln(table, "     "+row)
	}
	_ = table.Flush()
	n.rows = nil
	_, _ = aligned.WriteTo(n.w)
}

func took(begin time.Time) time.Duration { return time.Since(begin).Round(time.Millisecond) }
