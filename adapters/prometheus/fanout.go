// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/observer"
)

type fanoutMetrics struct {
	group
	inFlight         *prometheus.GaugeVec
	operations       *prometheus.HistogramVec
	durable          *prometheus.CounterVec
	commands         *prometheus.CounterVec
	commandDuration  *prometheus.HistogramVec
	commandsInFlight *prometheus.GaugeVec
	open             *prometheus.GaugeVec // a vector, so that there is no value before the first event
	oldest           *prometheus.GaugeVec // a vector, so that there is no value while no operation is open
}

func (f *fanoutMetrics) init(b *buckets) *group {
	f.inFlight = f.gauges("atoll_fanout_operations_in_flight", "Operations under way, also in the background after their commit.", "kind")
	f.operations = f.histograms(b, "atoll_fanout_operation_duration_seconds", "Time from the first command of an operation to its end, by final state.",
		[]float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}, "kind", "state")
	f.durable = f.counters("atoll_fanout_background_ends_total", "Ends of the work in the background after a commit, by whether the operation is durable.", "kind", "durable")
	f.commands = f.counters("atoll_fanout_commands_total", "Commands of the protocol that have ended, by verb, peer (empty for the log) and code of the answer.", "verb", "peer", "code")
	f.commandDuration = f.histograms(b, "atoll_fanout_command_duration_seconds", "Duration of commands of the protocol, by peer (empty for the log).", requestBounds(), "peer")
	f.commandsInFlight = f.gauges("atoll_fanout_commands_in_flight", "Commands of the protocol without an answer yet, by peer (empty for the log).", "peer")
	f.open = f.gauges("atoll_fanout_open_operations", "Operations that are open in the log after the last recovery; in a shared log, those of all coordinators.")
	f.oldest = f.gauges("atoll_fanout_oldest_open_operation_timestamp_seconds", "When the oldest operation that is open in the log began. There is no value if none is open.")
	return &f.group
}

// Fanout returns an Observer for fanout.Options, which counts and measures operations and their commands. Call it once
// for each Coordinator. The Observer calls next after each update; next may be nil.
func (m *Metrics) Fanout(next *fanout.Observer) *fanout.Observer {
	m.fanout.used.Store(true)
	t := &operations{fanoutMetrics: &m.fanout, running: map[string]*operation{}, sent: map[command][]time.Time{}}
	o := observer.Copy(next)
	o.Step = observer.Chain(t.step, o.Step)
	o.End = observer.Chain(t.end, o.End)
	o.Durable = observer.Chain(t.durableEnd, o.Durable)
	o.Backlog = observer.Chain(m.fanout.backlog, o.Backlog)
	return o
}

func (f *fanoutMetrics) backlog(_ context.Context, e fanout.BacklogEvent) {
	f.open.WithLabelValues().Set(float64(e.Open))
	if e.Oldest.IsZero() {
		f.oldest.Reset()
		return
	}
	f.oldest.WithLabelValues().Set(float64(e.Oldest.Unix()))
}

func (o *operations) end(_ context.Context, e fanout.EndEvent) {
	begun, ok := o.remove(e.Operation)
	if !ok { // it ended before its first command
		begun = time.Now()
	}
	o.operations.WithLabelValues(e.Kind.String(), string(e.State)).Observe(time.Since(begun).Seconds())
}

func (o *operations) durableEnd(_ context.Context, e fanout.EndEvent) {
	o.remove(e.Operation)
	durable := "false"
	if e.Durable {
		durable = "true"
	}
	o.durable.WithLabelValues(e.Kind.String(), durable).Inc()
}
