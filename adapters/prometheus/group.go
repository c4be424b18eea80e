// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A group is the metrics of one Observer. They are collected once the program has asked for this Observer: a program
// without a syncer does not expose zeros about syncers.
type group struct {
	collectors []prometheus.Collector
	used       atomic.Bool
}

func add[C prometheus.Collector](g *group, c C) C {
	g.collectors = append(g.collectors, c)
	return c
}

func (g *group) counter(name, help string) prometheus.Counter {
	return add(g, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (g *group) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return add(g, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (g *group) gauge(name, help string) prometheus.Gauge {
	return add(g, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (g *group) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(g, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

// histograms adds a histogram whose buckets have the bounds in b, or else the default ones.
func (g *group) histograms(b *buckets, name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return add(g, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: b.take(name, bounds)}, labels))
}

// buckets are the entries of Options.Buckets while New makes the metrics.
type buckets struct {
	given map[string][]float64
	taken map[string]bool
	errs  []error
}

func (b *buckets) take(name string, bounds []float64) []float64 {
	b.taken[name] = true
	given, ok := b.given[name]
	if !ok {
		return bounds
	}
	if err := checkBuckets(name, given); err != nil {
		b.errs = append(b.errs, err)
		return bounds
	}
	return slices.Clone(given)
}

// check returns an error for each entry that is not valid or whose name is not the name of a histogram.
func (b *buckets) check() error {
	errs := b.errs
	for _, name := range slices.Sorted(maps.Keys(b.given)) {
		if !b.taken[name] {
			errs = append(errs, fmt.Errorf("atollprometheus: Options.Buckets[%q]: no histogram has this name; there are %q", name, slices.Sorted(maps.Keys(b.taken))))
		}
	}
	return errors.Join(errs...)
}

// requestBounds suit requests to API servers over any distance.
func requestBounds() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}
