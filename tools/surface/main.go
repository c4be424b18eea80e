// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command surface lists the exported identifiers of the library with their users, and fails if
// one has neither a user outside its package nor a reason to be exported.
//
//	go -C tools run ./surface -o ../docs/evidence/surface.md .. ../cmd/atollctl ../cmd/atoll-manager ../internal/e2e
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	output := flag.String("o", "", "the page to write; none if empty")
	reasons := flag.String("reasons", "surface/reasons.txt", "reasons of identifiers without a user")
	flag.Parse()
	if err := run(*output, *reasons, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run lists the identifiers that the modules in dirs export, with their users in all of these
// modules. It writes the list to output, unless output is empty, and returns the verdict.
func run(output, reasons string, dirs []string) error {
	written, err := readReasons(reasons)
	if err != nil {
		return err
	}
	var s surface
	for _, dir := range dirs {
		if err := s.load(dir); err != nil {
			return fmt.Errorf("load %s: %w", dir, err)
		}
	}
	entries := s.entries(written)
	if output != "" {
		if err := os.WriteFile(output, []byte(page(entries)), 0o644); err != nil {
			return err
		}
	}
	return verdict(entries, written)
}
