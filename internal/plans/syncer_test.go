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

// syncing is the loop of a Syncer from the upstream to a server, for the SyncTarget of its name.
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

// attended is a Syncer with a person.
type attended struct{ *syncer.Syncer }

func (a attended) Start(ctx context.Context) error {
	return startAll(ctx, a.Syncer.Start, person(func() []*syncer.Syncer { return []*syncer.Syncer{a.Syncer} }))
}

// person lets go, after a while, the copies that Syncers hold because their origin is gone unseen: a restore of the upstream
// leaves such copies.
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

// only selects the types that a scenario has, so that its runs are cheap.
func only(resources ...schema.GroupVersionResource) syncer.TypeFilter {
	return func(gr schema.GroupResource) bool {
		for _, r := range resources {
			if r.GroupResource() == gr {
				return true
			}
		}
		return false
	}
}

// seldom is how often types are compared where none changes: most of a run's time would go into it.
const seldom = 20 * time.Minute

// settings is a ConfigMap for a cluster, or for none.
func settings(value, labels string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {" + labels + "}}, data: {value: " + value + "}}"
}

// web is a Deployment; more is what its pods have beside a container.
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

// lifeOfObjects is what befalls a ConfigMap and a Deployment of one cluster.
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
			change("somebody changes the copy of settings", "a", configMaps, "settings", `{"data":{"value":"theirs"}}`),
			strike("somebody deletes the copy of web", "a", deployments, "web"),
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
	return lifeOfObjects(syncer.Options{Types: only(configMaps, deployments), Discovery: seldom})
}

// With conditions, each object says whether it is synced. One cannot be at first: something foreign has its name.
func syncerConditions() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: only(configMaps, deployments), Discovery: seldom, Conditions: true}), workloads("a")},
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

// Objects of two clusters at once have a status of each.
func syncersShared() perturb.Scenario {
	opts := syncer.Options{Types: only(deployments), Discovery: seldom}
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

// Objects move between clusters by the label of one.
func syncersMove() perturb.Scenario {
	opts := syncer.Options{Types: only(configMaps), Discovery: seldom}
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

// A finalizer whose write the server carries out late, when the object has moved on, is not left behind. The edit makes the
// syncer's first write a Conflict; what it sent then had no precondition.
func TestALateFinalizerIsNotLeftBehind(t *testing.T) {
	first := perturb.Point{Loop: "syncer of b", Server: upstream, Verb: "patch", Resource: "configmaps", Namespace: "default", Name: "settings", N: 1}
	second := first
	second.N = 2
	of := perturb.Object{Server: upstream, Resource: "configmaps", Namespace: "default", Name: "settings"}
	perturb.Replay(t, syncersMove(), perturb.Plan{{Kind: perturb.EditBefore, At: first, Of: of}, {Kind: perturb.ApplyLate, At: second}})
}

// An origin that is replaced once more before the rest of its copy is written has that copy all the same.
func TestAnOriginThatIsReplacedTwice(t *testing.T) {
	perturb.Replay(t, syncerNamespaces(), perturb.Plan{
		{Kind: perturb.Restore, At: perturb.Point{Loop: "syncer of a", Server: "up", Verb: "patch", Resource: "services", Subresource: "status", Namespace: "default", Name: "web", N: 1}, Step: 1},
		{Kind: perturb.DeleteBefore, At: perturb.Point{Loop: "syncer of a", Server: "a", Verb: "patch", Resource: "services", Namespace: "acme-default", Name: "web", N: 2}, Of: perturb.Object{Server: "up", Resource: "services", Namespace: "default", Name: "web"}},
	})
}

// Of two syncers of one cluster, the one whose watch is late does not delete what the other has just made.
func TestACopyOfALivingOriginIsNotDeleted(t *testing.T) {
	perturb.Replay(t, syncersMove(), perturb.Plan{
		{Kind: perturb.Twice, At: perturb.Point{Loop: "syncer of b"}},
		{Kind: perturb.WatchLate, At: perturb.Point{Loop: "syncer of b", Server: "up", Verb: "watch", Resource: "configmaps", N: 5}},
	})
}

// An autoscaler downstream takes the replicas over, and the upstream shows them.
func syncerAutoscaler() perturb.Scenario {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{
			Types: only(deployments), Discovery: seldom,
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

// What somebody deletes downstream is deleted upstream.
func syncerDeleteUpstream() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: only(configMaps), Discovery: seldom, OnDownstreamDelete: syncer.DeleteUpstream})},
		Script: []perturb.Step{
			put("make settings", upstream, settings("one", forA)),
			put("change settings", upstream, settings("two", forA)),
			strike("somebody deletes the copy", "a", configMaps, "settings"),
			// Until it has surely been noticed: what is changed in between would be deleted with the object.
			later("the user is away", 20*time.Minute),
			put("the user makes it again", upstream, settings("three", forA)),
			put("take it from the cluster", upstream, settings("three", "")),
			put("give it back as it was", upstream, settings("three", forA)),
		},
		Holds:  has("a", configMaps, "settings", "three", "data", "value"),
		Always: keepsCopies,
	}
}

// Objects that are born downstream come up.
func syncerUpsync() perturb.Scenario {
	const up = "state.workload.kcp.io/a: Upsync"
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: only(configMaps, deployments), Upsync: only(configMaps, deployments), Discovery: seldom}), workloads("a")},
		Script: []perturb.Step{
			put("settings are born", "a", settings("one", up)),
			put("web is born", "a", web("2", "web:1", up)),
			put("settings change", "a", settings("two", up)),
			change("somebody changes them upstream", upstream, configMaps, "settings", `{"data":{"value":"theirs"}}`),
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

// Namespaces have a prefix downstream and are made when they are needed; services keep what the cluster gave them.
func syncerNamespaces() perturb.Scenario {
	service := func(port string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {" + forA + "}}, spec: {type: NodePort, selector: {app: web}, ports: [{port: " + port + "}]}}"
	}
	return perturb.Scenario{
		Servers: servers("a"), Differ: ofTheUpstream,
		Loops: []perturb.Loop{syncing("a", syncer.Options{Types: only(configMaps, services), Discovery: seldom, Namespaces: syncer.PrefixNamespaces("acme-")})},
		Script: []perturb.Step{
			put("make settings", upstream, settings("one", forA)),
			put("make a service", upstream, service("80")),
			put("change the service", upstream, service("81")),
			drop("delete settings", upstream, configMaps, "settings"),
		},
	}
}

// ofTheUpstream are marks that a Syncer derives from the UIDs of one run: of the upstream, and of each object.
var ofTheUpstream = []perturb.Field{
	{Path: "metadata.labels[syncer.atoll.dev/owner]"},
	{Path: "metadata.annotations[syncer.atoll.dev/applied]"},
}
