// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// alone holds the scenarios that only TestWriters runs, without faults. They cover fields that the
// other scenarios do not write.
var alone = map[string]func() perturb.Scenario{
	"splitter-autoscaler": splitterAutoscaler, "operations": operations, "catalog": catalog, "shards": shardMembers, "kinds": kinds,
	"pull": pulled, "syncer-ends": syncerEnds, "syncer-capacity": syncerCapacity,
}

// splitterAutoscaler is a scenario in which an autoscaler in a cluster changes the replicas of the
// downstream object of a shard. A Rule lets the syncer copy replicas upstream, but not those of a
// shard.
func splitterAutoscaler() perturb.Scenario {
	return perturb.Scenario{
		Servers: servers("a"),
		Loops: []perturb.Loop{
			splitting(splitter.Options{Finalize: true}),
			syncing("a", syncer.Options{Types: onlyTypes(deployments), Discovery: seldom, Heartbeat: 40 * time.Second, Rules: []syncer.Rule{
				{Type: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Path: "spec.replicas", Owner: syncer.FirstWriter, Up: true},
			}}),
			workloads("a"), autoscaler("a"),
		},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", "", "")),
			put("make web", upstream, web("2", "web:1", "")),
			put("change the image", upstream, web("2", "web:2", "")),
		},
		Beats: heartbeats,
		Holds: all(
			has("a", deployments, "web--a", int64(3), "spec", "replicas"), has(upstream, deployments, "web--a", int64(2), "spec", "replicas"),
		),
	}
}

// once returns a loop that calls do and then waits until its context ends.
func once(name string, do func(ctx context.Context, access perturb.Access) error) perturb.Loop {
	return perturb.Loop{Name: name, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		if err := do(ctx, access); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}

// operations is a scenario in which a program adds, changes and removes a ServiceCluster and an
// Account, with a log in a central plane.
func operations() perturb.Scenario {
	logged := definitionsOf("operations.fanout.atoll.dev")
	made := members(pair, "eu", "us")
	object := func(manifest string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			panic(err) // an error in the scenario
		}
		return o
	}
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			servers, err := made()
			if err != nil {
				return nil, err
			}
			definitions, err := logged()
			servers["plane"] = regiontest.NewServer(regiontest.Options{Name: "plane", Definitions: definitions})
			return servers, err
		},
		Loops: []perturb.Loop{once("operator", func(ctx context.Context, access perturb.Access) error {
			ring, err := ringOf(access, "eu", "us")
			if err != nil {
				return err
			}
			running, stop := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() { defer close(ended); _ = ring.Start(running) }()
			defer func() { stop(); <-ended }()
			plane, err := region.APIFor(access("plane"))
			if err != nil {
				return err
			}
			log, err := kubelog.New(plane, kubelog.Options{})
			if err != nil {
				return err
			}
			c, err := fanout.New(ring, log, fanout.Options{Kinds: account.Kinds()})
			if err != nil {
				return err
			}
			time.Sleep(time.Second) // meanwhile the ring reads its source
			_, accountErr := c.Add(ctx, object(accountOf("loodse", "Provider")), fanout.AddOptions{Target: "eu"})
			_, clusterErr := c.Add(ctx, object(strings.Replace(clusterA, "spec: {}", "spec: {kubeconfigSecret: {name: one}}", 1)), fanout.AddOptions{Target: "eu"})
			_, updateErr := c.Update(ctx, object(accountOf("loodse", "Provider", "Tenant")), fanout.AddOptions{})
			_, removeErr := c.Remove(ctx, schema.GroupKind{Group: "kubecarrier.io", Kind: "ServiceCluster"},
				types.NamespacedName{Namespace: "loodse", Name: "a"}, fanout.RemoveOptions{})
			return errors.Join(accountErr, clusterErr, updateErr, removeErr, c.Wait(ctx))
		})},
		Quiet: 2 * time.Minute,
	}
}

// catalog is a scenario in which a region is published to a tenant, and withdrawn.
func catalog() perturb.Scenario {
	types := definitionsOf("accounts.catalog.kubecarrier.io", "regions.catalog.kubecarrier.io")
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"plane": types, "eu": nil},
			map[string][]string{"plane": {"{apiVersion: v1, kind: Namespace, metadata: {name: acme}}"}}),
		Loops: []perturb.Loop{{Name: "catalog", Run: func(ctx context.Context, access perturb.Access) error {
			plane, err := region.APIFor(access("plane"))
			if err != nil {
				return err
			}
			creds, err := region.FromConfig(access("eu"))
			if err != nil {
				return err
			}
			source, err := region.FromPeers(region.Peer{Name: "eu", Credentials: creds, Regions: []region.Key{{Name: "a", Provider: "loodse"}}})
			if err != nil {
				return err
			}
			ring, err := region.NewRing(source, region.Options{})
			if err != nil {
				return err
			}
			c, err := account.NewCatalog(plane, ring, account.CatalogOptions{})
			if err != nil {
				return err
			}
			return startAll(ctx, ring.Start, c.Start)
		}}},
		Script: []perturb.Step{
			put("make the Account acme, as a Replicator holds it", "plane",
				"{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: acme, finalizers: [atoll.dev/replicated]}, spec: {roles: [Tenant]}}"),
			put("it is a tenant no longer", "plane",
				"{apiVersion: catalog.kubecarrier.io/v1alpha1, kind: Account, metadata: {name: acme, finalizers: [atoll.dev/replicated]}, spec: {roles: [Provider]}}"),
		},
	}
}

// shardMembers is a scenario in which two replicas of a program share keys, and the second replica
// ends after a minute.
func shardMembers() perturb.Scenario {
	member := func(name string, until time.Duration) perturb.Loop {
		return perturb.Loop{Name: name, Single: true, Run: func(ctx context.Context, access perturb.Access) error {
			plane, err := region.APIFor(access(upstream))
			if err != nil {
				return err
			}
			m, err := shard.New(plane, "kube-system", "example", shard.Options{Identity: name})
			if err != nil {
				return err
			}
			living, stop := context.WithTimeout(ctx, until)
			defer stop()
			err = m.Start(living)
			<-ctx.Done()
			return err
		}}
	}
	return perturb.Scenario{
		Servers: servers(), Loops: []perturb.Loop{member("a", 1000*time.Hour), member("b", time.Minute)},
		Beats: func(perturb.Point) bool { return true },
		Rest:  2 * time.Minute,
	}
}

// kinds is a scenario in which a Splitter divides a StatefulSet, a DaemonSet, a Job and a CronJob.
func kinds() perturb.Scenario {
	const pods = "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}"
	const once = "template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}"
	manifests := map[schema.GroupVersionResource]string{
		{Group: "apps", Version: "v1", Resource: "statefulsets"}: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 5, serviceName: x, " + pods + "}}",
		{Group: "apps", Version: "v1", Resource: "daemonsets"}:   "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {" + pods + "}}",
		{Group: "batch", Version: "v1", Resource: "jobs"}:        "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: 4, completions: 8, " + once + "}}",
		{Group: "batch", Version: "v1", Resource: "cronjobs"}:    "{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '* * * * *', jobTemplate: {spec: {" + once + "}}}}",
	}
	each := func(name string, do func(ctx context.Context, c dynamic.ResourceInterface, manifest string) error) perturb.Step {
		return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
			var errs []error
			for gvr, manifest := range manifests {
				c, err := client(access, upstream, gvr)
				errs = append(errs, err, do(ctx, c, manifest))
			}
			return errors.Join(errs...)
		}}
	}
	return perturb.Scenario{
		Servers: servers(),
		Loops: []perturb.Loop{splitting(splitter.Options{Kinds: []splitter.Kind{
			splitter.Deployments(), splitter.StatefulSets(), splitter.DaemonSets(), splitter.Jobs(), splitter.CronJobs(),
		}}), readyTargets(), shards()},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", twoThirds, "")),
			put("b joins", upstream, target("b", oneThird, "")),
			each("make one of each kind", func(ctx context.Context, c dynamic.ResourceInterface, manifest string) error {
				data, err := yaml.YAMLToJSON([]byte(manifest))
				if err != nil {
					return err
				}
				_, err = c.Patch(ctx, "x", types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "user"})
				return err
			}),
			each("delete all", func(ctx context.Context, c dynamic.ResourceInterface, _ string) error {
				return c.Delete(ctx, "x", metav1.DeleteOptions{})
			}),
		},
	}
}

// pulled is a scenario in which a targets.Controller installs a syncer in a cluster and removes the
// installation. An Agent runs in place of the installed program.
func pulled() perturb.Scenario {
	synced := func(gr schema.GroupResource) bool { return gr.Resource == "configmaps" }
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"up": targetTypes, "a": nil}, nil),
		Loops: []perturb.Loop{
			{Name: "targets", Run: func(ctx context.Context, access perturb.Access) error {
				up, err := region.APIFor(access("up"))
				if err != nil {
					return err
				}
				t, err := targets.New(up, targets.Options{
					Heartbeat: seldomBeats, Recheck: 24 * time.Hour,
					Mode: func(*v1alpha1.SyncTarget) targets.Mode { return targets.Pull },
					Install: func(context.Context, *v1alpha1.SyncTarget) (targets.Install, error) {
						return targets.Install{Kubeconfig: []byte("k"), Image: "i", Types: []schema.GroupResource{configMaps.GroupResource()}}, nil
					},
				})
				if err != nil {
					return err
				}
				return t.Start(reaching(ctx, access))
			}},
			{Name: "agent of a", Run: func(ctx context.Context, access perturb.Access) error {
				up, err := region.APIFor(access("up"))
				if err != nil {
					return err
				}
				down, err := region.APIFor(access("a"))
				if err != nil {
					return err
				}
				a, err := targets.NewAgent(up, down, syncer.Options{Target: "a", Types: synced, Discovery: seldomBeats, Heartbeat: seldomBeats})
				if err != nil {
					return err
				}
				return a.Start(ctx)
			}},
		},
		Quiet: 2 * time.Minute,
		Script: []perturb.Step{
			secret("write the Secret a", "up", "default", "a", "a", "first"),
			put("register a", "up", syncTarget("a")),
			put("make a ConfigMap for a", "up", syncedTo("a", "one")),
			deletes("take a out", "up", syncTarget("a")),
		},
		Beats: heartbeats,
	}
}

// syncerEnds is a scenario in which a user creates a namespace with labels, changes a label and
// deletes the namespace. A Syncer syncs the labels and the objects of the namespace.
func syncerEnds() perturb.Scenario {
	inShop := "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: a, labels: {" + forA + "}}, data: {value: one}}"
	shop := "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: one, pod-security.kubernetes.io/enforce: restricted}, annotations: {note: x}}}"
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			definitions, err := compiled()
			return map[string]perturb.Server{
				upstream: regiontest.NewServer(regiontest.Options{Name: upstream, Definitions: definitions, KeepNamespaceContent: true}),
				"a":      regiontest.NewServer(regiontest.Options{Name: "a"}),
			}, err
		},
		Loops: []perturb.Loop{syncing("a", syncer.Options{
			Types: onlyTypes(configMaps), Discovery: seldom, Namespaces: syncer.PrefixNamespaces("acme-"),
			NamespaceSync: syncer.NamespaceOptions{Finish: true, Delete: true, Metadata: []string{"team", "note", syncer.PodSecurity}},
		})},
		Script: []perturb.Step{
			put("make the namespace shop", upstream, shop),
			put("make a ConfigMap in it", upstream, inShop),
			put("change the labels of shop", upstream, strings.Replace(shop, "team: one", "team: two", 1)),
			deletes("delete shop", upstream, shop),
		},
	}
}

// syncerCapacity is a scenario in which a syncer counts nodes, and pods that fit no node.
func syncerCapacity() perturb.Scenario {
	replicaSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	const set = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web","labels":{"workloads.kcp.io/cluster":"a"}},
		"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web"}]}}}}`
	return perturb.Scenario{
		Servers: func() (map[string]perturb.Server, error) {
			all, err := servers("a")()
			if err != nil {
				return nil, err
			}
			c, err := dynamic.NewForConfig(all["a"].Config())
			if err != nil {
				return nil, err
			}
			node := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"one"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}`
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON([]byte(node)); err != nil {
				return nil, err
			}
			nodes := c.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
			made, err := nodes.Create(context.Background(), o, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			o.SetResourceVersion(made.GetResourceVersion())
			_, err = nodes.UpdateStatus(context.Background(), o, metav1.UpdateOptions{})
			return all, err
		},
		Loops: []perturb.Loop{syncing("a", syncer.Options{
			Types: onlyTypes(replicaSets), Discovery: seldom, Heartbeat: seldomBeats, Capacity: seldomBeats, Unscheduled: seldomBeats,
		})},
		Script: []perturb.Step{
			put("a joins", upstream, target("a", "", "")),
			{Name: "make a ReplicaSet for a", Do: func(ctx context.Context, access perturb.Access) error {
				c, err := client(access, upstream, replicaSets)
				if err != nil {
					return err
				}
				_, err = c.Patch(ctx, "web", types.ApplyPatchType, []byte(set), metav1.PatchOptions{FieldManager: "user"})
				return err
			}},
			{Name: "no node takes its pod", Do: func(ctx context.Context, access perturb.Access) error {
				copied, err := get(ctx, access, "a", replicaSets, "web")
				if copied == nil {
					return errors.Join(err, errors.New("there is no copy of web"))
				}
				c, err := client(access, "a", pods)
				if err != nil {
					return err
				}
				pod := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","labels":{"app":"web"},
					"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":%q,"controller":true}]},
					"spec":{"containers":[{"name":"web","image":"web"}]}}`, copied.GetUID())
				if _, err := c.Patch(ctx, "web-1", types.ApplyPatchType, pod, metav1.PatchOptions{FieldManager: "cluster"}); err != nil {
					return err
				}
				_, err = c.Patch(ctx, "web-1", types.MergePatchType, []byte(`{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/1 nodes are available"}]}}`),
					metav1.PatchOptions{FieldManager: "cluster"}, "status")
				return err
			}},
			later("it is counted", 2*seldomBeats),
			{Name: "it goes", Do: func(ctx context.Context, access perturb.Access) error {
				c, err := client(access, "a", pods)
				if err != nil {
					return err
				}
				if err := c.Delete(ctx, "web-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); !apierrors.IsNotFound(err) {
					return err
				}
				return nil
			}},
		},
		Beats: heartbeats,
		Holds: has(upstream, syncTargets, "a", "4", "status", "capacity", "cpu"),
	}
}
