// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
)

// together is a scenario in which a splitter, placement and two syncers work on the same objects,
// with heartbeats.
func together() perturb.Scenario {
	opts := syncer.Options{Types: onlyTypes(configMaps, deployments), Discovery: seldom, Heartbeat: 40 * time.Second}
	const heavy, light = zoneOne + ", " + twoThirds, zoneTwo + ", " + oneThird
	return perturb.Scenario{
		Servers: servers("a", "b"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{
			placing(placement.Options{}), splitting(splitter.Options{Place: placement.Place}),
			syncing("a", opts), syncing("b", opts), workloads("a"), workloads("b"),
		},
		// A heartbeat is a write of the status of a SyncTarget by its syncer.
		Beats: func(p perturb.Point) bool {
			return p.Resource == "synctargets.workload.kcp.io" && p.Subresource == "status"
		},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", heavy, "")),
			put("b joins", upstream, target("b", light, "")),
			put("a policy for a", upstream, policy(inOne)),
			put("make settings", upstream, settings("one", "")),
			put("make web", upstream, webWith("3", "web:1")),
			put("the policy moves it to b", upstream, policy(inTwo)),
			put("change web", upstream, webWith("3", "web:2")),
			put("the policy allows both", upstream, policy("maxClusters: 2")),
			put("b drains", upstream, target("b", light, evicted)),
			put("b returns", upstream, target("b", light, "")),
			put("web comes back from a dump, with what a syncer said of it", upstream, strings.Replace(webWith("3", "web:2"), "name: web,",
				`name: web, annotations: {unscheduled.syncer.atoll.dev/a: '{"pods":1}'},`, 1)),
			drop("delete web", upstream, deployments, "web"),
			put("make web again", upstream, webWith("6", "web:3")),
		},
		Holds: all(
			has("a", deployments, "web--a", int64(4), "spec", "replicas"), has("b", deployments, "web--b", int64(2), "spec", "replicas"),
			has(upstream, deployments, "web", int64(6), "status", "availableReplicas"),
			has("a", configMaps, "settings", "one", "data", "value"), has("b", configMaps, "settings", "one", "data", "value"),
		),
	}
}

// A Syncer does not mistake its own late write for a write of another Syncer.
func TestALateWriteIsNotAnotherSyncer(t *testing.T) {
	perturb.Replay(t, together(), perturb.Plan{
		{Kind: perturb.ApplyLate, At: perturb.Point{Loop: "syncer of b", Server: "b", Verb: "patch", Resource: "deployments.apps", Namespace: "default", Name: "web--b", N: 2}},
	})
}
