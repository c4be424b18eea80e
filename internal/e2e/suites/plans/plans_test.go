// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
)

// A splitter and two syncers run on real API servers. In each run one fault hits one of their
// writes or watch events. The loops reach the same end state as without faults, and stop writing. A
// plan is one such fault; ATOLL_PLANS is the number of plans to run (default 3), and 0 means all.
func TestPlans(t *testing.T) {
	plans, err := strconv.Atoi(cmp.Or(os.Getenv("ATOLL_PLANS"), "3"))
	require.NoError(t, err, "ATOLL_PLANS is a number of plans")
	report := perturb.Explore(t, workloads(t), perturb.Options{Real: true, Plans: plans, Only: func(p perturb.Plan) bool {
		return !strings.HasPrefix(p[0].At.Loop, clusterOf)
	}})
	t.Log(report)
	require.Positive(t, report.Runs)
	require.Less(t, report.Missed, report.Runs)
}

// workloads is a scenario with a ConfigMap that moves from one cluster to another, and a Deployment
// that is divided over the two clusters.
func workloads(t *testing.T) perturb.Scenario {
	planes := planetest.Shared(t, 3)
	servers := map[string]perturb.Server{upstream: server{planes[0]}, "a": server{planes[1]}, "b": server{planes[2]}}
	const quiet = time.Second
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			for _, s := range servers {
				if err := s.(server).clear(t.Context()); err != nil {
					return nil, err
				}
			}
			return servers, nil
		},
		Loops: []perturb.Loop{splitting(), syncing("a"), syncing("b"), reporting("a"), reporting("b")},
		Script: []perturb.Step{
			apply("make settings in a", settings("a", "one")),
			apply("make web", web(4, "web:1")),
			apply("move settings to b", settings("b", "two")),
			apply("change web", web(8, "web:2")),
			remove("delete settings", configMaps, "settings"),
			remove("delete web", deployments, "web"),
			apply("make web again", web(2, "web:3")),
		},
		Holds: func(ctx context.Context, access perturb.Access) error {
			return errors.Join(
				absent(ctx, access, configMaps, "settings", upstream, "a", "b"),
				has(ctx, access, "a", deployments, "web--a", int64(1), "spec", "replicas"),
				has(ctx, access, "b", deployments, "web--b", int64(1), "spec", "replicas"),
				has(ctx, access, upstream, deployments, "web", int64(2), "status", "availableReplicas"),
			)
		},
		Differ: []perturb.Field{
			{Path: "metadata.labels[syncer.atoll.dev/owner]"},
			{Path: "metadata.annotations[syncer.atoll.dev/applied]"},
			{Resource: "leases.coordination.k8s.io", Path: "spec"},
		},
		Quiet: quiet, Rest: 15 * quiet, Limit: 5 * time.Minute, // a watch is delayed by 10 times Quiet
	}
}

func splitting() perturb.Loop {
	return perturb.Loop{Name: "splitter", Run: func(ctx context.Context, access perturb.Access) error {
		up, err := api(access, upstream)
		if err != nil {
			return err
		}
		s, err := splitter.New(up, splitter.StaticClusters("a", "b"), splitter.Options{})
		if err != nil {
			return err
		}
		return s.Start(ctx)
	}}
}

func syncing(cluster string) perturb.Loop {
	return perturb.Loop{Name: "syncer of " + cluster, Run: func(ctx context.Context, access perturb.Access) error {
		up, err := api(access, upstream)
		if err != nil {
			return err
		}
		down, err := api(access, cluster)
		if err != nil {
			return err
		}
		s, err := syncer.New(up, down, syncer.Options{Target: cluster, Types: only(configMaps, deployments)})
		if err != nil {
			return err
		}
		return s.Start(ctx)
	}}
}
