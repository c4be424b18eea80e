// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

type counts struct{ passed, failed, skipped int }

// event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

// tally counts events. It prints the output of failed and skipped tests, and one line per package.
type tally struct {
	counts
	out     io.Writer
	running map[string]map[string]bool // by package, then test
	output  map[string]*strings.Builder
	failing map[string]bool // packages with a failed test
	reasons []string        // reasons of failures, line by line
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, running: map[string]map[string]bool{}, output: map[string]*strings.Builder{}, failing: map[string]bool{}}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				t.show(string(line)) // not an event: go's own message
			} else {
				t.add(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) add(e event) {
	switch {
	case e.Action == "build-output":
		t.show(e.Output)
	case e.Test == "":
		t.addPackage(e)
	default:
		t.addTest(e)
	}
}

func (t *tally) addPackage(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" {
			t.show(e.Output)
		}
	case "pass", "fail", "skip":
		unfinished := len(t.running[e.Package])
		t.failed += unfinished
		for test := range t.running[e.Package] {
			t.showTest(e.Package, test)
			t.explain(e.Package, test)
		}
		delete(t.running, e.Package)
		if e.Action == "fail" && unfinished == 0 && !t.failing[e.Package] {
			t.failed++
		}
	}
}

func (t *tally) addTest(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		if t.running[e.Package] == nil {
			t.running[e.Package] = map[string]bool{}
		}
		t.running[e.Package][e.Test] = true
	case "output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		delete(t.running[e.Package], e.Test)
		switch e.Action {
		case "pass":
			t.passed++
		case "skip":
			t.skipped++
			t.showTest(e.Package, e.Test) // a skip states its reason
		case "fail":
			t.failed++
			t.failing[e.Package] = true
			t.showTest(e.Package, e.Test)
			t.explain(e.Package, e.Test)
		}
		delete(t.output, key)
	}
}

func (t *tally) showTest(pkg, test string) {
	if o := t.output[pkg+" "+test]; o != nil {
		t.show(o.String())
	}
}

// explain records why a test failed.
func (t *tally) explain(pkg, test string) {
	if o := t.output[pkg+" "+test]; o != nil {
		if lines := reason(o.String()); len(lines) > 0 {
			t.reasons = append(append(t.reasons, "failed: "+pkg+" "+test), lines...)
		}
	}
}

func (t *tally) show(s string) { _, _ = io.WriteString(t.out, s) }

// finish counts the tests that a killed go test left unfinished as failed.
func (t *tally) finish() {
	for _, tests := range t.running {
		t.failed += len(tests)
	}
}

// save appends the counts to a file, and the reasons of failures to another.
func (t *tally) save(path string) error {
	return errors.Join(appendCounts(path, t.counts), appendReasons(reasonsOf(path), t.reasons))
}

// reasonsOf returns the path of the reasons, beside that of the counts.
func reasonsOf(counts string) string { return counts + ".reasons" }

func appendCounts(path string, c counts) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, c.passed, c.failed, c.skipped)
	return errors.Join(err, f.Close())
}

func readCounts(path string) (counts, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return counts{}, fmt.Errorf("nothing was counted: %w", err)
	} else if err != nil {
		return counts{}, err
	}
	var sum counts
	for line := range slices.Values(strings.Fields(strings.ReplaceAll(string(b), " ", ","))) {
		var c counts
		if _, err := fmt.Sscanf(line, "%d,%d,%d", &c.passed, &c.failed, &c.skipped); err != nil {
			return counts{}, fmt.Errorf("%s: line %q: %w", path, line, err)
		}
		sum = counts{sum.passed + c.passed, sum.failed + c.failed, sum.skipped + c.skipped}
	}
	return sum, nil
}
