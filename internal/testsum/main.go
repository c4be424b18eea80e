// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	// All further arguments belong to go test, its flags included.
	if len(args) < 1 {
		return 2, flag.ErrHelp
	}
	switch args[0] {
	case "-total":
		return total(args[1:], out)
	case "-fuzz":
		return fuzz(ctx, args[1:], out)
	}
	counts := ""
	if args[0] == "-append" && len(args) > 1 {
		counts, args = args[1], args[2:]
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	t := newTally(out)
	readErr := t.read(events)
	runErr := cmd.Wait()
	t.finish()
	if runErr != nil && t.failed == 0 {
		t.failed++ // go test itself failed
	}
	if counts != "" {
		if err := t.save(counts); err != nil {
			return 1, err
		}
	}
	if t.failed > 0 {
		return 1, readErr
	}
	return 0, readErr
}

func total(args []string, out io.Writer) (int, error) {
	if len(args) != 1 {
		return 2, fmt.Errorf("-total takes one file, got %q", args)
	}
	sum, err := readCounts(args[0])
	if err != nil {
		return 1, err
	}
	if err := showReasons(reasonsOf(args[0]), out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 1, err
	}
	_, err = fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped)
	if sum.failed > 0 || sum.passed == 0 {
		return 1, err
	}
	return 0, err
}

func fuzz(ctx context.Context, args []string, out io.Writer) (int, error) {
	if len(args) < 2 {
		return 2, fmt.Errorf("-fuzz takes a time and packages, got %q", args)
	}
	list, err := exec.CommandContext(ctx, "go", append([]string{"test", "-list", "^Fuzz"}, args[1:]...)...).Output()
	if err != nil {
		return 1, err
	}
	code := 0
	for _, target := range fuzzTargets(string(list)) {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+target.name+"$", "-fuzztime", args[0], target.pkg)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Run(); err != nil {
			code = 1
		}
	}
	return code, nil
}

type fuzzTarget struct{ pkg, name string }

// fuzzTargets parses the output of go test -list: the names of a package, then its "ok" line.
func fuzzTargets(list string) []fuzzTarget {
	var targets []fuzzTarget
	var names []string
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 1:
			names = append(names, fields[0])
		case len(fields) > 1 && fields[0] == "ok":
			for _, n := range names {
				targets = append(targets, fuzzTarget{fields[1], n})
			}
			names = nil
		}
	}
	return targets
}
