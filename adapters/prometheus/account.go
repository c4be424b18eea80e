// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/internal/observer"
)

type accountMetrics struct {
	group
	writes    *prometheus.CounterVec
	drifts    *prometheus.CounterVec
	ready     *prometheus.CounterVec
	removed   *prometheus.CounterVec
	presences *prometheus.CounterVec
	orphans   *prometheus.CounterVec
}

func (a *accountMetrics) init() *group {
	a.writes = a.counters("atoll_account_writes_total", "Actions on Accounts, by action and outcome.", "action", "outcome")
	a.drifts = a.counters("atoll_account_drifts_total", "Repairs of objects of an Account that another client had changed or deleted, by peer.", "peer")
	a.ready = a.counters("atoll_account_ready_changes_total", "Changes of the condition Ready of central objects, by its status.", "kind", "ready")
	a.removed = a.counters("atoll_account_removals_total", "Central objects of which no peer has anything left.", "kind")
	a.presences = a.counters("atoll_account_presence_changes_total", "Changes of the presence of central objects in the peers, by whether it is complete.", "complete")
	a.orphans = a.counters("atoll_account_orphans_total", "Reports of objects in a peer whose central object is missing.", "kind", "peer")
	return &a.group
}

// Account returns an Observer for account.Options and account.ControllerOptions, which counts operations, repairs and
// changes of conditions. It calls next after each update; next may be nil.
func (m *Metrics) Account(next *account.Observer) *account.Observer {
	a := &m.account
	a.used.Store(true)
	o := observer.Copy(next)
	o.Repaired = observer.Chain(func(_ context.Context, e account.RepairEvent) {
		a.writes.WithLabelValues("repair", outcome(e.Err)).Inc()
		if e.Drifted {
			a.drifts.WithLabelValues(string(e.Peer)).Inc()
		}
	}, o.Repaired)
	o.Replicated = observer.Chain(func(_ context.Context, e account.ReplicateEvent) {
		a.writes.WithLabelValues(e.Action, outcome(e.Err)).Inc()
	}, o.Replicated)
	o.Ready = observer.Chain(func(_ context.Context, e account.ReadyEvent) {
		if e.Before != e.Status {
			a.ready.WithLabelValues(kindOf(e.Object), string(e.Status)).Inc()
		}
	}, o.Ready)
	o.Removed = observer.Chain(func(_ context.Context, e account.RemoveEvent) {
		a.removed.WithLabelValues(kindOf(e.Object)).Inc()
	}, o.Removed)
	o.Changed = observer.Chain(func(_ context.Context, p account.Presence) {
		complete := "false"
		if p.Complete() {
			complete = "true"
		}
		a.presences.WithLabelValues(complete).Inc()
	}, o.Changed)
	o.Orphaned = observer.Chain(func(_ context.Context, e account.OrphanEvent) {
		a.orphans.WithLabelValues(e.Kind.String(), string(e.Peer)).Inc()
	}, o.Orphaned)
	return o
}

func kindOf(o account.Object) string {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind().String()
}
