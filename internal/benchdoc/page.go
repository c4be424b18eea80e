// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// result is one line of go test -bench.
type result struct {
	pkg, name string
	metrics   map[string]float64 // by unit
	units     []string           // in the order of the line
}

var procs = regexp.MustCompile(`-\d+$`)

func parse(text string) []result {
	var results []result
	pkg := ""
	for line := range strings.Lines(text) {
		if p, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = strings.TrimPrefix(strings.TrimSpace(p), "github.com/atoll-dev/atoll/")
			continue
		}
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 {
			continue
		}
		r := result{pkg: pkg, name: procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), ""), metrics: map[string]float64{}}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			r.metrics[fields[i+1]] = v
			r.units = append(r.units, fields[i+1])
		}
		results = append(results, r)
	}
	return results
}

// isRatio reports whether unit is relative to a baseline of the same run.
func isRatio(unit string) bool {
	return unit == "ratio" || strings.HasSuffix(unit, "-ratio") || unit == "x"
}

func page(command, machine string, results []result) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nWritten by `make bench`. Do not edit.\n\n")
	fmt.Fprintf(&b, "- Command: `%s`\n- Machine: %s\n\n", command, machine)
	b.WriteString("## Against a baseline\n\nEach ratio is measured against a baseline in the same run: above 1 is faster or more than the baseline. ")
	b.WriteString("The comment of each benchmark describes its baseline. ")
	b.WriteString("In the chart each full block is a factor of 2: to the right of the line more than the baseline, to the left less.\n\n" + ratioHeader)
	for _, r := range results {
		for _, u := range r.units {
			if isRatio(u) {
				b.WriteString(ratioRow(r.pkg, r.name, u, number(r.metrics[u])))
			}
		}
	}
	b.WriteString("\n## All figures\n\nAbsolute figures hold for this machine only.\n\n| package | benchmark | time per operation | allocations | other |\n|---|---|---|---|---|\n")
	for _, r := range results {
		var other []string
		for _, u := range r.units {
			if !isRatio(u) && !slices.Contains([]string{"ns/op", "B/op", "allocs/op"}, u) {
				other = append(other, number(r.metrics[u])+" "+u)
			}
		}
		allocs := "–"
		if n, ok := r.metrics["allocs/op"]; ok {
			allocs = fmt.Sprintf("%s (%s B)", number(n), number(r.metrics["B/op"]))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.pkg, r.name, duration(r.metrics["ns/op"]), allocs, strings.Join(other, ", "))
	}
	return b.String()
}

func duration(ns float64) string {
	switch {
	case ns >= 1e9:
		return number(ns/1e9) + " s"
	case ns >= 1e6:
		return number(ns/1e6) + " ms"
	case ns >= 1e3:
		return number(ns/1e3) + " µs"
	}
	return number(ns) + " ns"
}

func number(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// machine describes the machine on which the figures were measured.
func machine() string {
	s := fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		s += ", " + model
	}
	if memory, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		s += fmt.Sprintf(", %d GiB", (memory+1<<19)>>20)
	}
	return s
}

// field returns the value of the first "name : value" line of a file under /proc, or "".
func field(path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
