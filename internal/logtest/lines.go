// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logtest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// patience is the timeout of Await; only a failing test waits that long.
const patience = time.Minute

// Lines collects the lines of its Logger. It is safe for concurrent use.
type Lines struct {
	mu   sync.Mutex
	all  []string
	next chan struct{} // closed by the next line
}

// New returns empty Lines.
func New() *Lines { return &Lines{next: make(chan struct{})} }

// Logger returns a logger that writes to l. It drops lines of level 1 and above.
func (l *Lines) Logger() logr.Logger {
	return funcr.New(func(prefix, args string) { l.add(prefix + " " + args) }, funcr.Options{})
}

// Write adds p, the output of a program, as one line. p must contain whole lines, at least one.
func (l *Lines) Write(p []byte) (int, error) {
	l.add(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func (l *Lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
	close(l.next)
	l.next = make(chan struct{})
}

// Await waits for a line that contains all parts. It fails the test after a minute.
func (l *Lines) Await(t testing.TB, parts ...string) {
	t.Helper()
	expired := time.NewTimer(patience)
	defer expired.Stop()
	for read := 0; ; {
		l.mu.Lock()
		lines, next := l.all[read:], l.next
		read = len(l.all)
		l.mu.Unlock()
		for _, line := range lines {
			if containsAll(line, parts) {
				return
			}
		}
		select {
		case <-next:
		case <-expired.C:
			t.Fatalf("no log line contains %q; lines:\n%s", parts, strings.Join(l.List(), "\n"))
		}
	}
}

// List returns all lines so far.
func (l *Lines) List() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.all...)
}

func containsAll(line string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(line, p) {
			return false
		}
	}
	return true
}
