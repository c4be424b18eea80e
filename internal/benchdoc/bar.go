// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const ratioHeader = "| package | benchmark | figure | ratio | chart |\n|---|---|---|---|---|\n"

// ratioRow returns the row of a ratio, with its bar. The bar depends only on the printed ratio.
func ratioRow(pkg, name, unit, ratio string) string {
	return fmt.Sprintf("| %s | %s | %s | %s | `%s` |\n", pkg, name, unit, ratio, bar(ratio))
}

// barLeft is the width of the part for ratios below 1. A smaller ratio than 1/32 makes its bar wider.
const barLeft = 5

// bar returns a bar of logarithmic length, which begins at a line for the ratio 1. A block is a factor of 2, and half a
// block its root. A text that is not a ratio has no bar.
func bar(ratio string) string {
	v, err := strconv.ParseFloat(ratio, 64)
	if err != nil || v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return ""
	}
	halves := int(math.Round(2 * math.Log2(v)))
	less, more := max(0, -halves), max(0, halves)
	left := strings.Repeat("▐", less%2) + strings.Repeat("█", less/2)
	return strings.Repeat("·", max(0, barLeft-(less+1)/2)) + left + "│" + strings.Repeat("█", more/2) + strings.Repeat("▌", more%2)
}

// redraw returns a page with new bars for the ratios that it has.
func redraw(page string) string {
	var b strings.Builder
	within := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case line == strings.Split(ratioHeader, "\n")[0]+"\n":
			within = true
		case !strings.HasPrefix(line, "|"):
			within = false
		case within && cells[0] != "---" && len(cells) >= 4:
			line = ratioRow(cells[0], cells[1], cells[2], cells[3])
		}
		b.WriteString(line)
	}
	return b.String()
}
