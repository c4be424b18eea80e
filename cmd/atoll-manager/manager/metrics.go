// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/join"
	workloadv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// metrics are the metrics of the program, updated by the Observers of the loops.
type metrics struct {
	*atollprometheus.Metrics
	registry *prometheus.Registry
}

// newMetrics makes the metrics. ring returns nil while this installation is not a master.
func newMetrics(ring func() *region.Ring, dropped func() uint64) (*metrics, error) {
	of, err := atollprometheus.New(atollprometheus.Options{Directory: func() region.Directory {
		if r := ring(); r != nil {
			return r
		}
		return nil
	}})
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	of.Claim(nil) // exposes the count of decisions before this installation is a master
	m := &metrics{of, prometheus.NewRegistry()}
	m.registry.MustRegister(of, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_events_dropped_total", Help: "Events of objects that could not be written.",
		}, func() float64 { return float64(dropped()) }),
	)
	return m, nil
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// ofClusters also records an Event of the SyncTarget whose token or certificate was refused.
func (m *metrics) ofClusters(recorder *events.Recorder, plane region.API) *join.Observer {
	report := func(target string, uid types.UID, reason, message string) {
		if uid == "" {
			return // the token is not known, or the SyncTarget is gone; the log has the requester
		}
		recorder.Record(plane, events.Event{
			About: events.Object{APIVersion: workloadv1alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: target, UID: uid}, Type: events.Warning, Reason: reason, Message: message,
		})
	}
	return m.Join(&join.Observer{
		Denied: func(_ context.Context, e join.DecideEvent) {
			report(e.Target, e.TargetUID, "CertificateDenied", e.Message)
		},
		Expired: func(_ context.Context, e join.ExpireEvent) {
			report(e.Target, e.TargetUID, "TokenExpired", "a token to join expired before it was used")
		},
	})
}
