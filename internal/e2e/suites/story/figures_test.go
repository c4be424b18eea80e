// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// figures counts the requests of the users by chapter of the story.
type figures struct {
	mu       sync.Mutex
	chapters []*chapter
	failures []string
	away     map[string]chan struct{} // by region; closed when the region is back
}

// chapter is a part of the story.
type chapter struct {
	name        string
	began       time.Time
	took        time.Duration
	latencies   []time.Duration // of the requests that succeeded
	unavailable int             // requests to a region that was away
	failed      int             // other requests
}

func (c *chapter) requests() int { return len(c.latencies) + c.failed + c.unavailable }

func newFigures() *figures { return &figures{away: map[string]chan struct{}{}} }

// begin starts a chapter, and ends the one before.
func (f *figures) begin(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
	f.chapters = append(f.chapters, &chapter{name: name, began: time.Now()})
}

func (f *figures) end() {
	if n := len(f.chapters); n > 0 && f.chapters[n-1].took == 0 {
		f.chapters[n-1].took = time.Since(f.chapters[n-1].began)
	}
}

// leave notes that a region is going to be away; comeback, that regions serve again.
func (f *figures) leave(region string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away[region] = make(chan struct{})
}

func (f *figures) comeback(regions ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range regions {
		if back, away := f.away[r]; away {
			close(back)
			delete(f.away, r)
		}
	}
}

// succeeded notes a request that succeeded.
func (f *figures) succeeded(latency time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.chapters[len(f.chapters)-1]
	now.latencies = append(now.latencies, latency)
}

// failed notes a request that failed. It returns a channel that is closed when the missing region is back, or nil if the
// request should have succeeded. All regions together miss each region that is away.
func (f *figures) failed(region, what string, err error) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.chapters[len(f.chapters)-1]
	for name, back := range f.away {
		if region == name || region == "*" {
			now.unavailable++
			return back
		}
	}
	now.failed++
	f.failures = append(f.failures, fmt.Sprintf("%s: %s of %s: %v", now.name, what, region, err))
	return nil
}

// requests returns the number of requests, and count how many of them should have succeeded and failed.
func (f *figures) requests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.chapters {
		n += c.requests()
	}
	return n
}

func (f *figures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failures)
}

// problems returns the first requests that should have succeeded and failed.
func (f *figures) problems() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.failures[:min(len(f.failures), 10)], "\n")
}

// table returns the figures in Markdown.
func (f *figures) table() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
	var b strings.Builder
	b.WriteString("| chapter | seconds | requests | p50 | p99 | failed | to the region that was away |\n|---|---|---|---|---|---|---|\n")
	for _, c := range f.chapters {
		slices.Sort(c.latencies)
		fmt.Fprintf(&b, "| %s | %.0f | %d | %s | %s | %d | %d |\n", c.name, c.took.Seconds(), c.requests(),
			quantile(c.latencies, 50), quantile(c.latencies, 99), c.failed, c.unavailable)
	}
	return b.String()
}

func quantile(sorted []time.Duration, percent int) string {
	if len(sorted) == 0 {
		return "-"
	}
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond).String()
}
