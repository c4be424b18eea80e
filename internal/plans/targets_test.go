// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var targetTypes = definitionsOf("synctargets.workload.kcp.io")

// syncTarget returns a SyncTarget. Its Secret has the same name as the SyncTarget.
func syncTarget(name string) string {
	return fmt.Sprintf("{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: %s}, spec: {kubeconfigSecret: {namespace: default, name: %s}}}", name, name)
}

// syncedTo returns a ConfigMap for a cluster.
func syncedTo(cluster, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: of-%s, labels: {workloads.kcp.io/cluster: %s}}, data: {value: %s}}", cluster, cluster, value)
}

// targetsOfClusters is a scenario in which an operator registers two clusters, changes and breaks a
// Secret, and removes a cluster and adds it again, while a user has a ConfigMap in each.
func targetsOfClusters() perturb.Scenario {
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"up": targetTypes, "a": nil, "b": nil}, nil),
		Loops:   []perturb.Loop{{Name: "targets", Run: runTargets}},
		Quiet:   2 * time.Minute, // Secrets are read again every 30 seconds
		Script: []perturb.Step{
			put("register a", "up", syncTarget("a")),
			secret("write the Secret a", "up", "default", "a", "a", "first"),
			put("make a ConfigMap for a", "up", syncedTo("a", "one")),
			secret("write the Secret b", "up", "default", "b", "b", "first"),
			put("register b", "up", syncTarget("b")),
			put("make a ConfigMap for b", "up", syncedTo("b", "one")),
			secret("change the Secret a", "up", "default", "a", "a", "second"),
			put("spoil the Secret b", "up", "{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: b}, data: {kubeconfig: bm9uZQ==}}"),
			put("change the ConfigMap of b", "up", syncedTo("b", "two")),
			secret("mend the Secret b", "up", "default", "b", "b", "third"),
			deletes("take a out", "up", syncTarget("a")),
			put("change the ConfigMap of a", "up", syncedTo("a", "two")),
			put("register a again", "up", syncTarget("a")),
			drop("delete the ConfigMap of b", "up", configMaps, "of-b"),
			deletes("take b out", "up", syncTarget("b")),
		},
		Differ: []perturb.Field{
			ofOneRun,
			// Digests of UIDs.
			{Resource: "configmaps", Path: "metadata.annotations[syncer.atoll.dev/applied]"},
			{Resource: "configmaps", Path: "metadata.labels[syncer.atoll.dev/owner]"},
		},
		Beats: heartbeats,
	}
}

// heartbeats reports whether p writes the status of a SyncTarget, which has the heartbeat.
func heartbeats(p perturb.Point) bool {
	return p.Resource == "synctargets.workload.kcp.io" && p.Subresource == "status"
}

// seldomBeats is the interval of heartbeats. With the default interval, heartbeats at rest would
// take most of a run's time.
const seldomBeats = 10 * time.Minute

func newTargets(access perturb.Access) (region.API, *targets.Controller, error) {
	up, err := region.APIFor(access("up"))
	if err != nil {
		return nil, nil, err
	}
	t, err := targets.New(up, targets.Options{
		Heartbeat: seldomBeats,
		Configure: func(_ *v1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = seldomBeats
			opts.Types = func(gr schema.GroupResource) bool { return gr.Resource == "configmaps" }
		},
	})
	return up, t, err
}

func runTargets(ctx context.Context, access perturb.Access) error {
	_, t, err := newTargets(access)
	if err != nil {
		return err
	}
	return startAll(reaching(ctx, access), t.Start, person(func() (running []*syncer.Syncer) {
		for _, name := range []string{"a", "b"} {
			if s := t.Syncer(name); s != nil {
				running = append(running, s)
			}
		}
		return running
	}))
}

// thing returns a CRD whose schema has the field.
func thing(field string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s: {type: string}}}}}
`, field)
}

// fleetOfClusters is a scenario in which an operator registers clusters. One cluster defines a
// type, which all other clusters get, and then changes the type.
func fleetOfClusters() perturb.Scenario {
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"up": targetTypes, "a": nil, "b": nil}, nil),
		Loops:   []perturb.Loop{{Name: "fleet", Run: runFleet}},
		Quiet:   2 * time.Minute, // types are synced every 30 seconds
		Script: []perturb.Step{
			secret("write the Secret a", "up", "default", "a", "a", "first"),
			secret("write the Secret b", "up", "default", "b", "b", "first"),
			put("define things in a", "a", thing("size")),
			put("register a", "up", syncTarget("a")),
			put("register b", "up", syncTarget("b")),
			put("define another field in a", "a", thing("colour")),
			put("define the first field in a again", "a", thing("size")),
			deletes("take b out", "up", syncTarget("b")),
			put("register b again", "up", syncTarget("b")),
		},
		Differ: []perturb.Field{ofOneRun},
		Beats:  heartbeats,
	}
}

func runFleet(ctx context.Context, access perturb.Access) error {
	up, t, err := newTargets(access)
	if err != nil {
		return err
	}
	f, err := crds.NewFleet(up, t, crds.Options{Policy: crds.Policy{{Group: "example.com", Resource: "*", Direction: crds.Both, Remove: true}}})
	if err != nil {
		return err
	}
	return startAll(reaching(ctx, access), t.Start, f.Start)
}

// A Syncer with a late watch of the cluster does not mistake its own older writes for writes of
// another Syncer.
func TestALateWatchIsNotAnotherSyncer(t *testing.T) {
	perturb.Replay(t, targetsOfClusters(), perturb.Plan{
		{Kind: perturb.WatchLate, At: perturb.Point{Loop: "targets", Server: "a", Verb: "watch", Resource: "configmaps", N: 2}},
	})
}
