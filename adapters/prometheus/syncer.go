// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/syncer"
)

type syncerMetrics struct {
	group
	writes     *prometheus.CounterVec
	problems   *prometheus.GaugeVec
	overruled  *prometheus.CounterVec
	types      prometheus.Gauge
	another    prometheus.Gauge
	unreadable prometheus.Gauge
}

func (s *syncerMetrics) init() *group {
	s.writes = s.counters("atoll_syncer_writes_total", "Writes that a server accepted, by direction (upstream, downstream, or either for a namespace), kind of write and resource.",
		"direction", "write", "resource")
	s.problems = s.gauges("atoll_syncer_problems", "Objects that have a problem now, by resource and reason.", "resource", "reason")
	s.overruled = s.counters("atoll_syncer_overruled_total", "Downstream objects in which fields of another client were overwritten, by resource.", "resource")
	s.types = s.gauge("atoll_syncer_types", "Types that are synced, summed over the syncers.")
	s.another = s.gauge("atoll_syncer_duplicate_targets", "Syncers that notice another syncer of the same target.")
	s.unreadable = s.gauge("atoll_syncer_capacity_unreadable", "Syncers that cannot read the nodes of their downstream.")
	return &s.group
}

// Syncer returns an Observer for the syncer.Options of one Syncer. It counts writes and overwritten fields, and its
// gauges show the present problems and types, summed over the Syncers. Call it once for each Syncer, with a ctx that
// ends with the Syncer, such as the ctx of Start: the Syncer then no longer counts in the gauges. The Observer calls
// next after each update; next may be nil.
func (m *Metrics) Syncer(ctx context.Context, next *syncer.Observer) *syncer.Observer {
	m.syncer.used.Store(true)
	s := &syncerState{syncerMetrics: &m.syncer, problems: map[problemKey]syncer.Reason{}, types: map[schema.GroupResource]bool{}}
	context.AfterFunc(ctx, s.end)
	o := observer.Copy(next)
	o.Wrote = observer.Chain(s.wrote, o.Wrote)
	o.Problem = observer.Chain(s.problem, o.Problem)
	o.Overruled = observer.Chain(func(_ context.Context, e syncer.OverruledEvent) {
		s.overruled.WithLabelValues(e.Resource.String()).Inc()
	}, o.Overruled)
	o.Type = observer.Chain(s.synced, o.Type)
	o.Another = observer.Chain(func(_ context.Context, e syncer.AnotherEvent) {
		s.flag(&s.duplicate, e.Message != "", s.another)
	}, o.Another)
	o.Capacity = observer.Chain(func(_ context.Context, e syncer.CapacityEvent) {
		s.flag(&s.blind, e.Err != nil, s.unreadable)
	}, o.Capacity)
	return o
}

// syncerState is the part of one Syncer in the gauges.
type syncerState struct {
	*syncerMetrics

	mu        sync.Mutex
	ended     bool
	problems  map[problemKey]syncer.Reason
	types     map[schema.GroupResource]bool
	duplicate bool
	blind     bool
}

type problemKey struct {
	resource schema.GroupResource
	object   types.NamespacedName
}

func (s *syncerState) wrote(_ context.Context, e syncer.WriteEvent) {
	s.writes.WithLabelValues(direction(e.Write), string(e.Write), e.Resource.String()).Inc()
}

func direction(w syncer.Write) string {
	switch w {
	case syncer.WriteCreate, syncer.WriteUpdate, syncer.WriteDelete, syncer.WriteStatusDown:
		return "downstream"
	case syncer.WriteNamespace:
		return "either" // the event does not have its side
	default:
		return "upstream"
	}
}

func (s *syncerState) problem(_ context.Context, e syncer.ProblemEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.setProblem(problemKey{e.Resource, e.Object}, e.Reason)
	}
}

// setProblem replaces the problem of an object; an empty reason removes it. The caller holds the lock.
func (s *syncerState) setProblem(k problemKey, reason syncer.Reason) {
	if before, ok := s.problems[k]; ok {
		s.syncerMetrics.problems.WithLabelValues(k.resource.String(), string(before)).Dec()
		delete(s.problems, k)
	}
	if reason != "" {
		s.syncerMetrics.problems.WithLabelValues(k.resource.String(), string(reason)).Inc()
		s.problems[k] = reason
	}
}

func (s *syncerState) synced(_ context.Context, e syncer.TypeEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.setType(e.Resource.GroupResource(), e.Synced)
	}
}

// setType adds or removes a type. The Syncer drops the problems of a type that it ceases to sync without an event for
// each of them. The caller holds the lock.
func (s *syncerState) setType(resource schema.GroupResource, synced bool) {
	if s.types[resource] != synced {
		s.syncerMetrics.types.Add(2*oneIf(synced) - 1)
	}
	if synced {
		s.types[resource] = true
		return
	}
	delete(s.types, resource)
	for k := range s.problems {
		if k.resource == resource {
			s.setProblem(k, "")
		}
	}
}

// flag sets one of the states of this Syncer, and counts it in gauge.
func (s *syncerState) flag(state *bool, value bool, gauge prometheus.Gauge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || *state == value {
		return
	}
	*state = value
	gauge.Add(2*oneIf(value) - 1)
}

// end removes this Syncer from the gauges.
func (s *syncerState) end() {
	s.flag(&s.duplicate, false, s.another)
	s.flag(&s.blind, false, s.unreadable)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for resource := range s.types {
		s.setType(resource, false)
	}
	for k := range s.problems {
		s.setProblem(k, "")
	}
}
