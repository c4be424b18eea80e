// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/fanout"
)

const (
	progressAfter = time.Second            // of work, unless -v is given
	progressEvery = 200 * time.Millisecond // it is drawn anew
	silentAfter   = time.Second            // without an answer
)

// isTerminal says whether out is something that a person looks at.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// display shows on a terminal how far operations have come, a line for each
// peer, and takes the lines away when they are over.
type display struct {
	out      io.Writer
	progress *fanout.Progress
	now      func() time.Time

	mu    sync.Mutex
	lines int // that stand on the terminal
}

// show runs f while the progress is shown, from after on.
func (d *display) show(after time.Duration, f func() error) error {
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		for {
			select {
			case <-over:
				return
			case <-timer.C:
				d.above(func() {})
				timer.Reset(progressEvery)
			}
		}
	})
	err := f()
	close(over)
	wg.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	return err
}

// above prints something above the lines and draws these anew.
func (d *display) above(print func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	print()
	if lines := d.text(); len(lines) > 0 {
		d.lines = len(lines)
		fmt.Fprintln(d.out, strings.Join(lines, "\n"))
	}
}

func (d *display) erase() {
	if d.lines > 0 {
		fmt.Fprintf(d.out, "\x1b[%dA\x1b[J", d.lines)
		d.lines = 0
	}
}

func (d *display) text() []string {
	var lines []string
	now := d.now()
	for _, p := range d.progress.Peers() {
		line := fmt.Sprintf("%s %s: %s: %s", p.Kind.Kind, strings.TrimPrefix(p.Key.String(), "/"), p.Peer, p.State)
		if silent := now.Sub(p.Unanswered); !p.Unanswered.IsZero() && silent >= silentAfter {
			line += fmt.Sprintf(", no answer since %s (%s)", began(p.Unanswered), silent.Round(time.Second))
		}
		lines = append(lines, line)
	}
	return lines
}

// watched runs f with a Coordinator whose work is shown, if somebody looks.
func (s *session) watched(observer *fanout.Observer, f func() error) error {
	if !s.terminal {
		return f()
	}
	d := &display{out: s.errOut, progress: fanout.NewProgress(nil), now: s.now}
	print := observer.Step
	observer.Step = func(ctx context.Context, e fanout.StepEvent) {
		d.progress.Step(ctx, e)
		if print != nil {
			d.above(func() { print(ctx, e) })
		}
	}
	observer.End = func(ctx context.Context, e fanout.EndEvent) {
		d.progress.End(ctx, e)
		d.above(func() {}) // its lines are not below what is printed next
	}
	after := progressAfter
	if s.verbose {
		after = 0
	}
	return d.show(after, f)
}
