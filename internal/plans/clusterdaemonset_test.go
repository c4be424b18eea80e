// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// daemonizing returns the loop of a clusterdaemonset Controller for the SyncTargets.
func daemonizing(opts clusterdaemonset.Options) perturb.Loop {
	return starts("clusterdaemonset", func(access perturb.Access) (interface{ Start(context.Context) error }, error) {
		up, err := api(access, upstream)
		if err != nil {
			return nil, err
		}
		return clusterdaemonset.New(up, splitter.SyncTargets(up), opts)
	})
}

// daemonsRun is the loop that reports all replicas of each Deployment of a ClusterDaemonSet as available.
func daemonsRun() perturb.Loop {
	is := func(obj *unstructured.Unstructured) bool {
		return obj.GetLabels()[splitterv1alpha1.ClusterDaemonSetLabel] != ""
	}
	return reports(clusterOf+"daemons", upstream, deployments, is, availableStatus)
}

// agent returns a ClusterDaemonSet.
func agent(image, spec string) string {
	return "{apiVersion: splitter.atoll.dev/v1alpha1, kind: ClusterDaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, " +
		"template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: '" + image + "'}]}}, " + spec + "}}"
}

// clusterDaemonSetLife is a scenario in which a ClusterDaemonSet follows joining, draining and leaving clusters.
func clusterDaemonSetLife() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers(),
		Loops:   []perturb.Loop{daemonizing(clusterdaemonset.Options{}), daemonsRun(), readyTargets()},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", zoneOne, "")),
			put("make agent", upstream, agent("agent:1", "")),
			put("b joins", upstream, target("b", zoneTwo, "")),
			put("change agent", upstream, agent("agent:2", "replicasPerCluster: 2")),
			change("a user changes a Deployment", upstream, deployments, "agent--a", `{"spec":{"replicas":7}}`),
			strike("a user deletes a Deployment", upstream, deployments, "agent--b"),
			copied("a user copies a Deployment under another name", "agent--b", "agent-copy"),
			put("a drains", upstream, target("a", zoneOne, evicted)),
			put("a returns", upstream, target("a", zoneOne, "")),
			put("only zone two", upstream, agent("agent:2", inTwo)),
			drop("delete agent", upstream, daemons, "agent"),
			put("make agent again", upstream, agent("agent:3", "")),
			change("a user removes the annotations of a Deployment", upstream, deployments, "agent--a", `{"metadata":{"annotations":null}}`),
			drop("delete the copy", upstream, deployments, "agent-copy"),
			drop("b is removed", upstream, syncTargets, "b"),
			put("change agent again", upstream, agent("agent:4", "replicasPerCluster: 3")),
		},
		Holds: all(
			has(upstream, deployments, "agent--a", int64(3), "spec", "replicas"),
			has(upstream, daemons, "agent", int64(1), "status", "readyClusters"),
		),
	}
}
