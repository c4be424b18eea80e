// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/shard"
)

// options configure a replica.
type options struct {
	Kubeconfig     string // empty: that of the Pod
	Verbosity      int
	Namespace      string
	Identity       string
	HealthAddress  string // "0": no endpoint
	MetricsAddress string // "0": no endpoint

	Registry prometheus.Registerer // nil: that of controller-runtime, which its endpoint serves
	Hurry    bool                  // short intervals for tests
}

// newManager returns a controller-runtime manager of three Runnables: the members, which share the
// work among the replicas; the recorder of Events; and the master, which runs the loops while the
// installation is a master. It starts nothing.
func newManager(config *rest.Config, opts options, logger logr.Logger) (manager.Manager, error) {
	if opts.Registry == nil {
		opts.Registry = metrics.Registry
	}
	numbers, err := newNumbers(opts.Registry)
	if err != nil {
		return nil, err
	}
	plane, err := region.APIFor(config)
	if err != nil {
		return nil, err
	}
	members, err := shard.New(plane, opts.Namespace, "atoll-controllers", shard.Options{
		Identity: opts.Identity, Observer: numbers.ofShard(), Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	recorder := events.New(events.Options{Controller: "atoll-controllermanager", Instance: members.Identity(), Logger: logger})
	blueprint := &blueprint{config: config, plane: plane, members: members, numbers: numbers, events: recorder, opts: opts}
	// The loops log to the master's logger, which is in their context.
	master, err := central.NewMaster(plane, blueprint.run, central.MasterOptions{
		Shards: members, Observer: numbers.ofCentral(), Logger: logger,
	})
	if err != nil {
		return nil, err
	}

	m, err := manager.New(config, manager.Options{
		Logger:                 logger,
		HealthProbeBindAddress: opts.HealthAddress,
		Metrics:                server.Options{BindAddress: opts.MetricsAddress},
	})
	if err != nil {
		return nil, err
	}
	return m, errors.Join(
		m.Add(runInEachReplica(members.Start)),
		m.Add(runInEachReplica(recorder.Start)),
		m.Add(runInEachReplica(master.Start)),
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("member", func(*http.Request) error {
			if len(members.Live()) == 0 {
				return errors.New("this replica is not a member of its group, so it owns no work")
			}
			return nil
		}),
		m.AddReadyzCheck("ring", func(*http.Request) error { return blueprint.ready() }),
	)
}

// runInEachReplica is the Start function of a loop that runs in each replica. Every loop of Atoll is a
// manager.Runnable already; this type only declares that the loop needs no leader election.
type runInEachReplica func(context.Context) error

// Start runs the loop.
func (start runInEachReplica) Start(ctx context.Context) error { return start(ctx) }

// NeedLeaderElection returns false.
func (runInEachReplica) NeedLeaderElection() bool { return false }

var _ manager.LeaderElectionRunnable = runInEachReplica(nil)
