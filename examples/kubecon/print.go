// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/examples/internal/chart"
	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// narrator prints the story. All methods except chapter are safe for concurrent use.
type narrator struct {
	w        io.Writer
	chapters int

	mu      sync.Mutex
	gap     bool // the last line is empty
	begin   time.Time
	samples []chart.Sample // each change of the ready replicas
}

func (n *narrator) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gap = text == ""
	_, _ = fmt.Fprintln(n.w, text)
}

// space prints an empty line, unless the last line is empty.
func (n *narrator) space() {
	n.mu.Lock()
	gap := n.gap
	n.mu.Unlock()
	if !gap {
		n.say("")
	}
}

func (n *narrator) chapter(title string) {
	n.chapters++
	n.space()
	n.say(fmt.Sprintf("%d. %s", n.chapters, title))
	n.space()
}

// note prints a comment.
func (n *narrator) note(format string, args ...any) { n.say("# " + fmt.Sprintf(format, args...)) }

// command prints a user's command, and the output that kubectl would print.
func (n *narrator) command(command string, answer ...string) {
	n.say("$ " + command)
	for _, line := range answer {
		n.say(line)
	}
}

// firstColumn is the width of a column with all names of the story.
const firstColumn = len(workload+"--cluster-1") + 2

// table prints a table as kubectl get does.
func (n *narrator) table(command string, rows [][2]string) {
	n.say("$ " + command)
	for _, row := range append([][2]string{{"NAME", "READY"}}, rows...) {
		n.say(strings.TrimRight(fmt.Sprintf("%-*s%s", firstColumn, row[0], row[1]), " "))
	}
	n.space()
}

// count prints the number of ready replicas, and their clusters.
func (n *narrator) count(since time.Duration, total int, where string) {
	n.say(fmt.Sprintf("%6.1fs  %2d  %-15s  %s", since.Seconds(), total, strings.Repeat("#", min(total, 30)), where))
}

// keep keeps the ready replicas of each cluster for the chart.
func (n *narrator) keep(ready []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.samples) == 0 {
		n.begin = time.Now()
	}
	n.samples = append(n.samples, chart.Sample{At: time.Since(n.begin), Areas: ready})
}

// chart returns the chart of all kept numbers.
func (n *narrator) chart() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return chart.Chart{Title: "Ready replicas over time", Areas: stage.Names()[1:], Samples: n.samples}.SVG()
}
