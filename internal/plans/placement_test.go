// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// placing returns the loop of a placement Controller for the SyncTargets.
func placing(opts placement.Options) perturb.Loop {
	return starts("placement", func(access perturb.Access) (interface{ Start(context.Context) error }, error) {
		up, err := api(access, upstream)
		if err != nil {
			return nil, err
		}
		return placement.New(up, splitter.SyncTargets(up), opts)
	})
}

// policy returns a PlacementPolicy that places dependents, too.
func policy(spec string) string {
	return "{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: web}, spec: {dependents: true, " + spec + "}}"
}

// policyEverywhere returns a ClusterPlacementPolicy that places dependents, too.
func policyEverywhere(spec string) string {
	return "{apiVersion: splitter.atoll.dev/v1alpha1, kind: ClusterPlacementPolicy, metadata: {name: everywhere}, spec: {dependents: true, " + spec + "}}"
}

const (
	zoneOne = "zone: one"
	zoneTwo = "zone: two"
	inOne   = "clusterSelector: {matchLabels: {" + zoneOne + "}}"
	inTwo   = "clusterSelector: {matchLabels: {" + zoneTwo + "}}"
)

// webWith returns a Deployment whose pods refer to the ConfigMap settings.
func webWith(replicas, image string) string {
	return web(replicas, image, "", ", volumes: [{name: settings, configMap: {name: settings}}]")
}

// placementLife is a scenario in which a policy moves a workload and the objects that its pods
// refer to.
func placementLife() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers(),
		Loops:   []perturb.Loop{placing(placement.Options{}), readyTargets()},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", zoneOne, "")),
			put("b joins", upstream, target("b", zoneTwo, "")),
			put("make settings", upstream, settings("one", "")),
			put("make web", upstream, webWith("2", "web:1")),
			put("a policy places it in a", upstream, policy(inOne)),
			put("a policy for all namespaces decides about no such object", upstream, policyEverywhere("maxClusters: 2")),
			put("the policy moves it to b", upstream, policy(inTwo)),
			put("change settings", upstream, settings("two", "")),
			put("b drains", upstream, target("b", zoneTwo, evicted)),
			put("the policy allows both", upstream, policy("maxClusters: 2")),
			put("b returns", upstream, target("b", zoneTwo, "")),
			drop("the policy goes", upstream, policies, "web"),
			put("the policy for all namespaces selects another one", upstream, policyEverywhere("namespaceSelector: {matchLabels: {team: other}}, "+inOne)),
			put("the policy for all namespaces moves it to b", upstream, policyEverywhere(inTwo)),
			drop("the policy for all namespaces goes", upstream, wide, "everywhere"),
			put("the policy says none", upstream, policy("mode: None")),
			put("the policy places it in a again", upstream, policy(inOne)),
			drop("delete web", upstream, deployments, "web"),
		},
	}
}

// While a watch is late for ten minutes, the Controller repeats its writes from the stale cache
// with backoff. The run has fewer than three times the writes of an undisturbed run.
func TestALateWatchCausesFewWrites(t *testing.T) {
	late := perturb.Point{Loop: "placement", Server: upstream, Verb: "watch", Resource: "configmaps", N: 7}
	report := perturb.Find(t, placementLife(), perturb.Options{Only: func(p perturb.Plan) bool {
		return p[0].Kind == perturb.WatchLate && p[0].At == late
	}})
	require.Equal(t, 1, report.Runs)
	require.Zero(t, report.Missed)
	require.Empty(t, report.Failures)
	require.Less(t, report.MostWrites, 3*report.Writes)
}
