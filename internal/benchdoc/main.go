// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchdoc runs benchmarks and writes a Markdown page with their figures, the command and
// the machine.
//
//	benchdoc [-bench REGEXP] [-o FILE] PACKAGES...
//
// A benchmark that reports a "ratio" compares itself with a baseline that it measures on the same
// machine in the same run. Ratios get a table of their own, since seconds depend on the machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	bench := flag.String("bench", ".", "which benchmarks to run")
	out := flag.String("o", "docs/evidence/benchmarks.md", "where to write the page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *bench, *out, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchdoc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bench, path string, packages []string) error {
	args := append([]string{"test", "-run", "^$", "-bench", bench, "-benchmem", "-timeout", "60m", "-p", "1"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&text, os.Stdout), os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	results := parse(text.String())
	if len(results) == 0 {
		return fmt.Errorf("no benchmark matches %q in %v", bench, packages)
	}
	return os.WriteFile(path, []byte(page("go "+strings.Join(args, " "), machine(), results)), 0o644)
}
