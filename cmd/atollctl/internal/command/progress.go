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
	"github.com/atoll-dev/atoll/region"
)

const (
	progressAfter = time.Second            // how long a command runs before its progress is shown; with -v at once
	progressEvery = 200 * time.Millisecond // refresh interval
	silentAfter   = time.Second            // after this time without a response, the peer is shown as silent
)

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// display shows the progress of operations on a terminal, a line for each peer, and erases the
// lines when the operations have ended.
type display struct {
	out      io.Writer
	progress *fanout.Progress
	now      func() time.Time

	mu    sync.Mutex
	lines int // on the terminal at present
}

// show runs f. Once f has run for longer than after, show displays the progress until f returns.
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

// above erases the progress lines, calls print, and draws the lines again below its output.
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
			if cause := region.CauseOf(p.Err); cause != region.CauseUnknown {
				line += ": " + string(cause)
			}
		}
		if len(p.Finalizers) > 0 {
			line += ", waits for finalizer " + strings.Join(p.Finalizers, ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

// notices prints a line for each peer that an operation waits for, with the cause. It takes the
// place of display if standard error is not a terminal.
type notices struct {
	out      io.Writer
	progress *fanout.Progress
	now      func() time.Time

	mu      sync.Mutex
	noticed map[string]bool
}

// step is the Step hook of an Observer.
func (n *notices) step(ctx context.Context, e fanout.StepEvent) {
	n.progress.Step(ctx, e)
	if !e.Done || ctx.Err() != nil { // a canceled request is not the peer's fault, and the command's error reports it
		return
	}
	for _, p := range n.progress.Peers() {
		if p.Operation != e.Operation || p.Peer != e.Peer {
			continue
		}
		var why, text string
		switch {
		case len(p.Finalizers) > 0:
			why = strings.Join(p.Finalizers, ", ")
			text = "finalizer " + why
		case p.Err != nil && !p.Unanswered.IsZero() && n.now().Sub(p.Unanswered) >= silentAfter:
			why, text = string(region.CauseOf(p.Err)), oneLine(p.Err)
		default:
			continue
		}
		n.notice(p, why, text)
	}
}

// notice prints a line, unless it has printed a line for the same operation, peer and cause.
func (n *notices) notice(p fanout.PeerProgress, why, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := p.Operation + " " + string(p.Peer) + " " + why
	if !n.noticed[key] {
		n.noticed[key] = true
		fmt.Fprintf(n.out, "waiting: %s %s: %s\n", p.Kind.Kind, strings.TrimPrefix(p.Key.String(), "/"), waitText(p, text))
	}
}

// waitText returns text with the name of the peer. It adds the name only if text does not begin
// with it.
func waitText(p fanout.PeerProgress, text string) string {
	peer := fmt.Sprintf("peer %s: ", p.Peer)
	if strings.HasPrefix(text, peer) {
		return text
	}
	return peer + text
}

// watched runs f and shows the progress of operations that observer observes: on a terminal every
// peer, elsewhere only the peers for which an operation waits.
func (s *session) watched(observer *fanout.Observer, f func() error) error {
	if !s.terminal {
		n := &notices{out: s.errOut, progress: fanout.NewProgress(nil), now: s.now, noticed: map[string]bool{}}
		print := observer.Step
		observer.Step = func(ctx context.Context, e fanout.StepEvent) {
			s.steps.Lock()
			n.step(ctx, e)
			s.steps.Unlock()
			if print != nil {
				print(ctx, e)
			}
		}
		observer.End = n.progress.End
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
		d.above(func() {}) // erase and redraw before the next output
	}
	after := progressAfter
	if s.verbose {
		after = 0
	}
	return d.show(after, f)
}
