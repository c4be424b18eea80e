// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// sample has the number of ready replicas at a time of the story.
type sample struct {
	at    time.Duration
	ready []int // by cluster; -1: the cluster is cut off
}

// Sizes of the chart, in pixels.
const (
	chartWidth, chartHeight   = 720, 260 // of the area of the curves
	chartLeft, chartTop       = 40, 30   // of its upper left corner
	chartTotalWidth           = chartLeft + chartWidth + 20
	chartTotalHeight          = chartTop + chartHeight + 40
	chartTicks                = 6
	chartReplicasBetweenLines = 5
)

// chartColors are the colours of the clusters.
var chartColors = []string{"#4477aa", "#ccbb44", "#228833", "#aa3377"}

// chart returns an SVG of the ready replicas over time. The clusters are stacked, and keep their numbers from one sample
// to the next. The samples are in the order of their times, and each has a number for each of the names.
func chart(names []string, samples []sample) string {
	top, end := chartReplicasBetweenLines, time.Second
	for _, s := range samples {
		total := 0
		for _, n := range s.ready {
			total += max(0, n)
		}
		top, end = max(top, total), max(end, s.at)
	}
	x := func(at time.Duration) float64 { return chartLeft + chartWidth*at.Seconds()/end.Seconds() }
	y := func(n int) float64 { return chartTop + chartHeight*(1-float64(n)/float64(top)) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", chartTotalWidth, chartTotalHeight)
	fmt.Fprintf(&b, "<title>Ready replicas over time</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n")
	for i, name := range names {
		fmt.Fprintf(&b, `<path fill="%s" d="%s"/>`+"\n", chartColors[i%len(chartColors)], area(samples, i, x, y, end))
		fmt.Fprintf(&b, `<rect x="%d" y="8" width="12" height="12" fill="%s"/><text x="%d" y="18">%s</text>`+"\n",
			chartLeft+120*i, chartColors[i%len(chartColors)], chartLeft+120*i+18, name)
	}
	for n := 0; n <= top; n += chartReplicasBetweenLines {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#bbbbbb"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n",
			chartLeft, chartLeft+chartWidth, y(n), y(n), chartLeft-6, y(n)+4, n)
	}
	for i := range chartTicks + 1 {
		at := end * time.Duration(i) / chartTicks
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.1fs</text>`+"\n", x(at), chartTop+chartHeight+20, at.Seconds())
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// area returns the path of one cluster's area, which is stacked on those of the clusters before it.
func area(samples []sample, cluster int, x func(time.Duration) float64, y func(int) float64, end time.Duration) string {
	var above, below []string
	for i, s := range samples {
		until := end
		if i+1 < len(samples) {
			until = samples[i+1].at
		}
		base := 0
		for _, n := range s.ready[:cluster] {
			base += max(0, n)
		}
		head := base + max(0, s.ready[cluster])
		above = append(above, fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x(s.at), y(head), x(until), y(head)))
		below = append([]string{fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x(until), y(base), x(s.at), y(base))}, below...)
	}
	if len(samples) == 0 {
		return ""
	}
	return "M" + strings.Join(append(above, below...), " ") + "Z"
}
