// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/syncer"
)

// syncing returns the loop of a Syncer from the upstream to a server, for the SyncTarget with the
// server's name.
func syncing(server string, opts syncer.Options) perturb.Loop {
	opts.Target = server
	return starts("syncer of "+server, func(access perturb.Access) (interface{ Start(context.Context) error }, error) {
		up, err := api(access, upstream)
		if err != nil {
			return nil, err
		}
		down, err := api(access, server)
		if err != nil {
			return nil, err
		}
		s, err := syncer.New(up, down, opts)
		return attended{s}, err
	})
}

// attended is a Syncer with a person who releases held objects.
type attended struct{ *syncer.Syncer }

func (a attended) Start(ctx context.Context) error {
	return startAll(ctx, a.Syncer.Start, person(func() []*syncer.Syncer { return []*syncer.Syncer{a.Syncer} }))
}

// person releases, after a while, the downstream objects that Syncers hold because the objects'
// origins disappeared without a delete event. A restore of the upstream causes this.
func person(syncers func() []*syncer.Syncer) func(context.Context) error {
	return func(ctx context.Context) error {
		seen := map[*syncer.Syncer]int{}
		for {
			select {
			case <-time.After(20 * time.Minute):
			case <-ctx.Done():
				return nil
			}
			for _, s := range syncers() {
				held := 0
				for _, t := range s.Status().Types {
					held += t.OriginGone
				}
				if held > 0 && held == seen[s] {
					s.Release()
				}
				seen[s] = held
			}
		}
	}
}

// onlyTypes returns a filter for the types of a scenario. Syncing few types makes the runs cheap.
func onlyTypes(resources ...schema.GroupVersionResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool {
		for _, r := range resources {
			if r.GroupResource() == gr {
				return true
			}
		}
		return false
	}
}

// seldom is the interval at which a syncer compares types, in scenarios whose types do not change.
// With the default interval, comparing would take most of a run's time.
const seldom = 20 * time.Minute

// settings returns a ConfigMap with the given value and labels.
func settings(value, labels string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + labels + "}}, data: {value: " + value + "}}"
}

// web returns a Deployment; more is added to the spec of its pods.
func web(replicas, image, labels string, more ...string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {` + labels + `}}
spec:
  replicas: ` + replicas + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: ` + image + `, imagePullPolicy: Always}]` + strings.Join(more, "") + `}
`
}

const forA = "workloads.kcp.io/cluster: a"

// lifeOfObjects is a scenario with a ConfigMap and a Deployment of one cluster.
func lifeOfObjects(opts syncer.Options) perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", opts), workloads("a")},
		Script: []perturb.Step{
			put("make settings", upstream, settings("one", forA)),
			put("make web", upstream, web("2", "web:1", forA)),
			put("change settings", upstream, settings("two", forA)),
			put("change settings back", upstream, settings("one", forA)),
			put("change web", upstream, web("3", "web:2", forA)),
			change("a user changes settings downstream", "a", configMaps, "settings", `{"data":{"value":"theirs"}}`),
			strike("a user deletes web downstream", "a", deployments, "web"),
			put("take settings from the cluster", upstream, settings("one", "")),
			put("give settings to the cluster again", upstream, settings("three", forA)),
			drop("delete web", upstream, deployments, "web"),
			put("make web again", upstream, web("1", "web:3", forA)),
			drop("delete settings", upstream, configMaps, "settings"),
		},
		Holds: all(
			absent("a", configMaps, "settings"), absent(upstream, configMaps, "settings"),
			has("a", deployments, "web", int64(1), "spec", "replicas"),
			has(upstream, deployments, "web", int64(1), "status", "availableReplicas"),
		),
		Always: keepsCopies,
	}
}

func syncerLife() perturb.Scenario {
	return lifeOfObjects(syncer.Options{Types: onlyTypes(configMaps, deployments), Discovery: seldom})
}

// syncerConditions is a scenario with the option Conditions, so each object has a condition that
// shows whether it is synced. At first one object is not synced, because a foreign object
// downstream has its name.
func syncerConditions() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: onlyTypes(configMaps, deployments), Discovery: seldom, Conditions: true}), workloads("a")},
		Script: []perturb.Step{
			put("something foreign has the name", "a", settings("foreign", "")),
			put("make settings", upstream, settings("one", forA)),
			put("make web", upstream, web("2", "web:1", forA)),
			drop("the foreign object goes", "a", configMaps, "settings"),
			put("change web", upstream, web("2", "web:2", forA)),
			put("take web from the cluster", upstream, web("2", "web:2", "")),
			put("give web to the cluster again", upstream, web("3", "web:2", forA)),
		},
		Always: keepsCopies,
	}
}

// syncersShared is a scenario in which users give a Deployment to one of two clusters or to both.
// While it is for both clusters, it has a status of each.
func syncersShared() perturb.Scenario {
	opts := syncer.Options{Types: onlyTypes(deployments), Discovery: seldom}
	const forA, forB = "state.workload.kcp.io/a: Sync", "state.workload.kcp.io/b: Sync"
	return perturb.Scenario{
		Servers: servers("a", "b"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", opts), syncing("b", opts), workloads("a"), workloads("b")},
		Script: []perturb.Step{
			put("make web in both", upstream, web("2", "web:1", forA+", "+forB)),
			put("take it from a", upstream, web("3", "web:1", forB)),
			put("give it to a, take it from b", upstream, web("3", "web:2", forA)),
			put("give it to both", upstream, web("4", "web:2", forA+", "+forB)),
			drop("delete web", upstream, deployments, "web"),
			put("make web again", upstream, web("1", "web:1", forA+", "+forB)),
		},
		Always: keepsCopies,
	}
}

// syncersMove is a scenario in which users move a ConfigMap between two clusters by its label.
func syncersMove() perturb.Scenario {
	opts := syncer.Options{Types: onlyTypes(configMaps), Discovery: seldom}
	const forB = "workloads.kcp.io/cluster: b"
	return perturb.Scenario{
		Servers: servers("a", "b"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", opts), syncing("b", opts)},
		Script: []perturb.Step{
			put("make settings in a", upstream, settings("one", forA)),
			put("move it to b", upstream, settings("two", forB)),
			put("move it back", upstream, settings("one", forA)),
			drop("delete it", upstream, configMaps, "settings"),
			put("make it in b", upstream, settings("three", forB)),
		},
		Holds:  all(absent("a", configMaps, "settings"), has("b", configMaps, "settings", "three", "data", "value")),
		Always: keepsCopies,
	}
}

// The server applies the write of a finalizer late, after the object has moved to another cluster.
// The syncer must still remove that finalizer. The edit makes the syncer's first write fail with a
// Conflict, so the late write is its retry. In an earlier version the retry had no precondition.
func TestALateFinalizerIsNotLeftBehind(t *testing.T) {
	first := perturb.Point{Loop: "syncer of b", Server: upstream, Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "settings", N: 1}
	second := first
	second.N = 2
	of := perturb.Object{Server: upstream, Resource: "configmaps", Namespace: "default", Name: "settings"}
	perturb.Replay(t, syncersMove(), perturb.Plan{{Kind: perturb.EditBefore, At: first, Of: of}, {Kind: perturb.ApplyLate, At: second}})
}

// An origin is replaced a second time while its downstream object is incomplete. The downstream
// object then belongs to the newest origin.
func TestAnOriginThatIsReplacedTwice(t *testing.T) {
	perturb.Replay(t, syncerNamespaces(), perturb.Plan{
		{Kind: perturb.Restore, At: perturb.Point{Loop: "syncer of a", Server: "up", Verb: "patch", Resource: "services", Subresource: "status", Namespace: "default", Name: "web", N: 1}, Step: 1},
		{Kind: perturb.DeleteBefore, At: perturb.Point{Loop: "syncer of a", Server: "a", Verb: "patch", Resource: "services", Namespace: "acme-default", Name: "web", N: 2}, Of: perturb.Object{Server: "up", Resource: "services", Namespace: "default", Name: "web"}},
	})
}

// Of two syncers of one cluster, the one with a late watch does not delete the object that the
// other has just created.
func TestACopyOfALivingOriginIsNotDeleted(t *testing.T) {
	perturb.Replay(t, syncersMove(), perturb.Plan{
		{Kind: perturb.Twice, At: perturb.Point{Loop: "syncer of b"}},
		{Kind: perturb.WatchLate, At: perturb.Point{Loop: "syncer of b", Server: "up", Verb: "watch", Resource: "configmaps", N: 5}},
	})
}

// syncerAutoscaler is a scenario in which an autoscaler downstream takes over the replicas of a
// Deployment, and the syncer copies them upstream.
func syncerAutoscaler() perturb.Scenario {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{
			Types: onlyTypes(deployments), Discovery: seldom,
			Rules: []syncer.Rule{
				{Type: kind, Path: "spec.replicas", Owner: syncer.FirstWriter, Up: true},
				{Type: kind, Path: "spec.selector", Change: syncer.Recreate},
			},
		}), workloads("a"), autoscaler("a")},
		Script: []perturb.Step{
			put("make web", upstream, web("2", "web:1", forA)),
			put("change the image", upstream, web("2", "web:2", forA)),
			put("change the image back", upstream, web("2", "web:1", forA)),
			put("change the image again", upstream, web("2", "web:2", forA)),
		},
		Holds: all(
			has("a", deployments, "web", int64(3), "spec", "replicas"), has(upstream, deployments, "web", int64(3), "spec", "replicas"),
		),
	}
}

// syncerDeleteUpstream is a scenario in which a user deletes an object downstream, and the syncer
// then deletes it upstream.
func syncerDeleteUpstream() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: onlyTypes(configMaps), Discovery: seldom, OnDownstreamDelete: syncer.DeleteUpstream})},
		Script: []perturb.Step{
			put("make settings", upstream, settings("one", forA)),
			put("change settings", upstream, settings("two", forA)),
			strike("a user deletes settings downstream", "a", configMaps, "settings"),
			// Wait until the syncer has deleted the object upstream: it would delete an earlier
			// change of the object, too.
			later("the user is away", 20*time.Minute),
			put("the user makes it again", upstream, settings("three", forA)),
			put("take it from the cluster", upstream, settings("three", "")),
			put("give it back as it was", upstream, settings("three", forA)),
		},
		Holds:  has("a", configMaps, "settings", "three", "data", "value"),
		Always: keepsCopies,
	}
}

// syncerUpsync is a scenario in which users create objects downstream, and the syncer syncs them
// upstream.
func syncerUpsync() perturb.Scenario {
	const up = "state.workload.kcp.io/a: Upsync"
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: onlyTypes(configMaps, deployments), Upsync: onlyTypes(configMaps, deployments), Discovery: seldom}), workloads("a")},
		Script: []perturb.Step{
			put("settings are born", "a", settings("one", up)),
			put("web is born", "a", web("2", "web:1", up)),
			put("settings change", "a", settings("two", up)),
			change("another user changes settings upstream", upstream, configMaps, "settings", `{"data":{"value":"theirs"}}`),
			put("settings change back", "a", settings("one", up)),
			put("settings are not for the upstream", "a", settings("one", "")),
			put("settings are for the upstream", "a", settings("three", up)),
			drop("web goes", "a", deployments, "web"),
			put("web is born again", "a", web("1", "web:1", up)),
		},
		Holds: all(
			has(upstream, configMaps, "settings", "three", "data", "value"), has(upstream, deployments, "web", int64(1), "status", "availableReplicas"),
		),
	}
}

// syncerNamespaces is a scenario in which the downstream namespaces have a prefix, and the syncer
// creates them when it needs them. A Service keeps the fields that the cluster allocates.
func syncerNamespaces() perturb.Scenario {
	service := func(port string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {" + forA + "}}, spec: {type: NodePort, selector: {app: web}, ports: [{port: " + port + "}]}}"
	}
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: onlyTypes(configMaps, services), Discovery: seldom, Namespaces: syncer.PrefixNamespaces("acme-")})},
		Script: []perturb.Step{
			put("make settings", upstream, settings("one", forA)),
			put("make a service", upstream, service("80")),
			put("change the service", upstream, service("81")),
			drop("delete settings", upstream, configMaps, "settings"),
		},
	}
}

// ofTheUpstream lists the fields that a Syncer derives from the UIDs of the upstream and its
// objects. These UIDs differ in each run.
var ofTheUpstream = []perturb.Field{
	{Path: "metadata.labels[syncer.atoll.dev/owner]"},
	{Path: "metadata.annotations[syncer.atoll.dev/applied]"},
}
