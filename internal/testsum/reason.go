// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Limits of the output of failures that -total repeats: often readers see only the end of a long
// log.
const (
	reasonLines  = 14 // of one test
	reasonWidth  = 240
	reasonsLines = 32 // of all tests
)

// reason returns the lines that show why a test failed: those from its first assertion, panic or
// race on, or its last lines if it has none of these.
func reason(output string) []string {
	var lines []string
	at := -1
	for line := range strings.Lines(output) {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- FAIL: ") {
			continue
		}
		for _, mark := range []string{"Error Trace:", "panic: ", "WARNING: DATA RACE", "fatal error: "} {
			if at < 0 && strings.HasPrefix(text, mark) {
				at = len(lines)
			}
		}
		if len(text) > reasonWidth {
			text = strings.ToValidUTF8(text[:reasonWidth], "") + "…"
		}
		lines = append(lines, text)
	}
	if at < 0 {
		return lines[max(0, len(lines)-reasonLines):]
	}
	return lines[at:min(len(lines), at+reasonLines)]
}

// appendReasons appends the reasons of failures to a file.
func appendReasons(path string, reasons []string) error {
	if len(reasons) == 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, r := range reasons {
		if _, err = fmt.Fprintln(f, r); err != nil {
			break
		}
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// showReasons prints the content of the file, up to a limit.
func showReasons(path string, out io.Writer) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, line := range lines {
		if i == reasonsLines {
			_, err = fmt.Fprintf(out, "and %d lines more\n", len(lines)-i)
			return err
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out)
	return err
}
