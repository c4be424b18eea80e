// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest

import (
	"testing"
	"time"
)

// Compare runs Bare, Requests and Divided alternately, each in its own namespace, as often as the
// benchmark requires. It reports the times of Divided, and how they compare: "ratio" is the wall time
// of Bare divided by the wall time of Divided, and "requests-ratio" is the wall time of Requests
// divided by the wall time of Divided. "cpu-ratio" and "requests-cpu-ratio" are the same ratios of
// the CPU times of this process.
func Compare(b *testing.B, n int, fresh func() (Servers, string)) {
	b.Helper()
	var ours, fewest, same Cost
	add := func(to *Cost, c Cost) {
		to.Wall += c.Wall
		to.CPU += c.CPU
	}
	for b.Loop() {
		servers, namespace := fresh()
		add(&fewest, servers.Bare(b, namespace, n))
		servers, namespace = fresh()
		add(&same, servers.Requests(b, namespace, n))
		servers, namespace = fresh()
		add(&ours, servers.Divided(b, namespace, n))
	}
	each := func(d time.Duration) float64 { return float64(d.Milliseconds()) / float64(b.N) }
	b.ReportMetric(each(ours.Wall), "wall-ms")
	b.ReportMetric(each(ours.CPU), "cpu-ms")
	b.ReportMetric(each(fewest.Wall), "bare-wall-ms")
	b.ReportMetric(each(same.Wall), "requests-wall-ms")
	b.ReportMetric(fewest.Wall.Seconds()/ours.Wall.Seconds(), "ratio")
	b.ReportMetric(same.Wall.Seconds()/ours.Wall.Seconds(), "requests-ratio")
	b.ReportMetric(fewest.CPU.Seconds()/ours.CPU.Seconds(), "cpu-ratio")
	b.ReportMetric(same.CPU.Seconds()/ours.CPU.Seconds(), "requests-cpu-ratio")
}
