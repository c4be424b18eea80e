// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// consistent watches a resource and fails the test if, in any version of an object, the annotation
// and the labels name different clusters.
func (w *world) consistent(gvr schema.GroupVersionResource) {
	changes, err := w.of(gvr).Watch(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range changes.ResultChan() {
			if obj, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Deleted {
				if said := obj.GetAnnotations()["splitter.atoll.dev/placement"]; list(split(said)) != targets(obj) {
					w.t.Errorf("%s has %q and the labels of %s", obj.GetName(), said, targets(obj))
				}
			}
		}
	}()
	w.t.Cleanup(func() {
		changes.Stop()
		<-done
	})
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// The object goes through the placements NONE, A, (A,B), A, NONE. Each change is one write.
func TestStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.consistent(configMaps)
		w.configMap("settings", "app: web")
		w.startPlacement(placement.Options{Linger: time.Minute}, cluster("a", "tier=gold"), cluster("b"))
		require.Empty(t, w.happened("settings"), "no policy selects it")

		w.policy("web", "{selector: {matchLabels: {app: web}}, clusterSelector: {matchLabels: {tier: gold}}}")
		require.Equal(t, []string{"NONE -> a"}, w.happened("settings"))
		w.patch(policies, "web", `{"spec":{"clusterSelector":null}}`)
		require.Equal(t, []string{"a -> a,b"}, w.happened("settings"))
		require.Equal(t, "web", w.annotation(configMaps, "settings", "placed-by"))
		w.patch(policies, "web", `{"spec":{"clusterSelector":{"matchLabels":{"tier":"gold"}}}}`)
		require.Equal(t, []string{"a,b -> a,b leaving b"}, w.happened("settings"), "pods in the cluster may still use it")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a,b -> a"}, w.happened("settings"))
		w.patch(policies, "web", `{"spec":{"mode":"None"}}`)
		require.Equal(t, []string{"a -> a leaving a"}, w.happened("settings"))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"a -> NONE"}, w.happened("settings"))

		patches := 0
		for _, r := range w.Requests() {
			if r.Verb == "patch" && r.Resource == "configmaps" && r.Name == "settings" && r.Code == http.StatusOK {
				patches++ // a write from a stale cache fails with a Conflict and changes nothing
			}
		}
		require.Equal(t, 6, patches)
		require.Equal(t, map[string]any{"key": "value"}, w.get(configMaps, "settings").Object["data"])
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")
	})
}

// An object changes while the Controller's write to it is delayed. The write fails with a Conflict,
// and the Controller decides again.
func TestStatesAreComparedAndSwapped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.consistent(configMaps)
		w.configMap("settings", "app: web")
		w.policy("web", "{selector: {matchLabels: {app: web}}, clusterSelector: {matchLabels: {tier: gold}}}")
		w.Inject(regiontest.Fault{Verb: "patch", Name: "settings", Do: regiontest.Delay(5 * time.Second)})
		w.startPlacement(placement.Options{}, cluster("a", "tier=gold"), cluster("b"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		obj := w.get(configMaps, "settings")
		require.Equal(t, "NONE", targets(obj), "the write is delayed")
		obj.SetLabels(map[string]string{"app": "other"})
		_, err := w.of(configMaps).Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Empty(t, w.happened("settings"))
		require.Equal(t, map[string]string{"app": "other"}, w.get(configMaps, "settings").GetLabels(), "no policy selects it any more")
	})
}

// A replica leaves a draining cluster only after another replica is available in the new cluster.
// The ConfigMap that the pods refer to stays in the draining cluster until the workload has left
// it.
func TestDrainDoesNotDip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("one", "{maxClusters: 1, dependents: true, clusterSelector: {matchLabels: {tier: gold}}}")
		w.create(deployments, deployment("web", 4, ", volumes: [{name: v, configMap: {name: settings}}]"))
		w.configMap("settings", "")
		a, b := cluster("a", "tier=gold"), cluster("b", "tier=gold")
		w.startPlacement(placement.Options{Linger: time.Second}, a)
		w.split(a)
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		require.Equal(t, []string{"NONE -> a"}, w.happened("settings"))
		require.Equal(t, map[string]int64{"a": 4}, w.shards())
		w.works("web--a", 4)

		w.set(draining(a))
		require.Empty(t, w.happened("web"), "no other cluster can be chosen")
		require.Equal(t, map[string]int64{"a": 4}, w.shards())

		w.set(draining(a), b)
		require.Equal(t, []string{"a -> a,b leaving a"}, w.happened("web"))
		require.Equal(t, []string{"a -> a,b"}, w.happened("settings"))
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		for n := range int64(4) {
			w.works("web--b", n)
			require.Empty(t, w.happened("web"))
			require.Equal(t, map[string]int64{"a": 4 - n, "b": 4}, w.shards(), "as many leave as are available in b")
			w.works("web--a", 4-n)
		}
		w.works("web--b", 4)
		require.Equal(t, []string{"a,b -> b"}, w.happened("web"))
		require.Equal(t, []string{"a,b -> a,b leaving a", "a,b -> b"}, w.happened("settings"))
		require.Equal(t, map[string]int64{"b": 4}, w.shards())

		w.set(a, b)
		require.Empty(t, w.happened("web"), "it stays in its cluster")
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")

		w.patch(policies, "one", `{"spec":{"mode":"None"}}`)
		w.happened("web")
		require.Empty(t, w.shards(), "mode None removes all shards")
		require.Empty(t, w.annotation(deployments, "web", "placement"))
		require.Equal(t, "NONE", w.targets(configMaps, "settings"))
	})
}

func TestClustersJoinAndFallSilent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		a, b, c := cluster("a", zone+"=1"), cluster("b", zone+"=1"), cluster("c", zone+"=2")
		w.policy("spread", "{maxClusters: 2, spreadBy: ["+zone+"]}")
		w.create(deployments, deployment("web", 6, ""))
		w.startPlacement(placement.Options{}, a, c)
		w.split(a, c)
		require.Equal(t, []string{"NONE -> a,c"}, w.happened("web"))
		w.works("web--a", 3)
		w.works("web--c", 3)
		w.set(a, b, c)
		require.Empty(t, w.happened("web"), "a cluster that joins replaces no other")

		w.set(a, b, silent(c))
		require.Empty(t, w.happened("web"))
		time.Sleep(4 * time.Minute)
		w.set(a, b, c)
		require.Empty(t, w.happened("web"), "reachable again within the grace period")

		w.set(a, b, silent(c))
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"a,c -> a,b,c leaving c", "a,b,c -> a,b"}, w.happened("web"))
		require.Equal(t, int64(3), w.shards()["b"])
		w.set(a, b, c)
		time.Sleep(time.Hour)
		require.Empty(t, w.happened("web"), "a cluster that returns replaces no other")

		// While all clusters are unreachable, there is no better cluster, so the object stays.
		before := w.shards()
		w.set(silent(a), silent(b), silent(c))
		time.Sleep(time.Hour)
		require.Empty(t, w.happened("web"))
		require.Equal(t, before, w.shards())
	})
}

func TestDependents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		for _, name := range []string{"volume", "env", "other", "projected"} {
			w.configMap(name, "")
		}
		for _, name := range []string{"pull", "key", "file", "other"} {
			w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
		}
		for _, name := range []string{"robot", "default"} {
			w.create(core("serviceaccounts"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+"}}")
		}
		w.create(core("persistentvolumeclaims"), "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}")
		for name, selector := range map[string]string{"web": "app: web", "db": "app: db", "manual": ""} {
			w.create(core("services"), "{apiVersion: v1, kind: Service, metadata: {name: "+name+"}, spec: {selector: {"+selector+"}, ports: [{port: 80}]}}")
		}
		w.create(deployments, deployment("web", 2, `, serviceAccountName: robot, serviceAccount: default, imagePullSecrets: [{name: pull}], initContainers: [
			{name: init, image: init, envFrom: [{configMapRef: {name: env}}], env: [{name: K, valueFrom: {secretKeyRef: {name: key, key: k}}}]}], volumes: [
			{name: v, configMap: {name: volume}}, {name: d, persistentVolumeClaim: {claimName: data}}, {name: s, secret: {secretName: file}},
			{name: p, projected: {sources: [{configMap: {name: projected}}]}}]`))
		w.policy("all", "{}")
		w.startPlacement(placement.Options{Linger: time.Minute}, cluster("a"), cluster("b"))
		w.rest()
		require.Equal(t, "NONE", w.targets(configMaps, "volume"), "the policy has no dependents")
		require.Equal(t, "a,b", w.annotation(deployments, "web", "placement"))
		require.Equal(t, "NONE", w.targets(deployments, "web"), "only its shards have labels")

		w.patch(policies, "all", `{"spec":{"dependents":true}}`)
		w.rest()
		for resource, want := range map[string]map[string]string{
			"configmaps":             {"volume": "a,b", "env": "a,b", "projected": "a,b", "other": "NONE"},
			"secrets":                {"pull": "a,b", "key": "a,b", "file": "a,b", "other": "NONE"},
			"serviceaccounts":        {"robot": "a,b", "default": "NONE"},
			"persistentvolumeclaims": {"data": "a,b"},
			"services":               {"web": "a,b", "db": "NONE", "manual": "NONE"},
		} {
			for name, clusters := range want {
				require.Equal(t, clusters, w.targets(core(resource), name), "%s %s", resource, name)
			}
		}
		require.Equal(t, "(reference)", w.annotation(configMaps, "volume", "placed-by"))

		// A dependent that is created later follows its workload too. A dependent that no workload
		// refers to any longer leaves all clusters after Linger.
		w.patch(deployments, "web", `{"spec":{"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"next"}}]}}}}`)
		w.configMap("next", "")
		w.rest()
		require.Equal(t, "a,b", w.targets(configMaps, "next"))
		require.Equal(t, "a,b", w.targets(configMaps, "volume"), "older pods may need it")
		time.Sleep(time.Minute)
		w.rest()
		require.Equal(t, "NONE", w.targets(configMaps, "volume"))
		require.Empty(t, w.get(configMaps, "volume").GetAnnotations(), "as before the first reference")
		w.remove(deployments, "web")
		time.Sleep(2 * time.Minute)
		require.Equal(t, "NONE", w.targets(configMaps, "next"))
		require.Equal(t, "NONE", w.targets(core("services"), "web"))
	})
}

// Pods refer to Secrets of the core group. An object of another API group, whose resource is also
// named secrets, does not count as a dependent.
func TestDependentsAreOfTheCoreGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		others := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "secrets"}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "secrets.example.org"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: others.Group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "secrets", Kind: "Secret"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
		}}
		require.NoError(t, w.AddCRD(crd))
		w.create(others, "{apiVersion: example.org/v1, kind: Secret, metadata: {name: key}}")
		w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: key}}")
		w.create(deployments, deployment("web", 2, ", volumes: [{name: s, secret: {secretName: key}}]"))
		w.policy("all", "{dependents: true}")
		w.startPlacement(placement.Options{Others: []schema.GroupVersionResource{core("secrets"), others}}, cluster("a"))
		w.rest()
		require.Equal(t, "a", w.targets(core("secrets"), "key"))
		w.patch(others, "key", `{"metadata":{"labels":{"it":"changes"}}}`)
		w.rest()
		require.Equal(t, "NONE", w.targets(others, "key"))
	})
}

func TestPoliciesSayWhetherTheyCanBeFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("gold", "{clusterSelector: {matchLabels: {tier: gold}}}")
		w.policy("none", "{mode: None}")
		// The message is cut: an API server would reject a condition with a message of this length.
		w.policy("broken", "{selector: {matchExpressions: [{key: app, operator: "+strings.Repeat("Near", 10000)+"}]}}")
		w.startPlacement(placement.Options{}, cluster("a"))
		w.rest()
		ready := func(name string) string {
			status, _, _ := unstructured.NestedMap(w.get(policies, name).Object, "status")
			c := status["conditions"].([]any)[0].(map[string]any)
			return fmt.Sprint(c["status"], " ", c["reason"], " ", status["clusters"], " of generation ", status["observedGeneration"])
		}
		require.Equal(t, "False NoClusters <nil> of generation 1", ready("gold"))
		require.Equal(t, "True Complete <nil> of generation 1", ready("none"))
		require.Equal(t, "False Invalid <nil> of generation 1", ready("broken"))
		w.set(cluster("a", "tier=gold"), silent(cluster("b", "tier=gold")), cluster("c"))
		w.rest()
		require.Equal(t, "True Complete 2 of generation 1", ready("gold"))
		w.patch(policies, "gold", `{"spec":{"maxClusters":1}}`)
		w.rest()
		require.Equal(t, "True Complete 1 of generation 2", ready("gold"))
		w.set(cluster("a", "tier=gold", v1alpha1.WeightLabel+"=2x"), cluster("c", v1alpha1.WeightLabel+"=3x"))
		w.rest()
		require.Equal(t, "True Complete 1 of generation 2", ready("gold"), "a label that cannot be read does not stop the others")
		conditions, _, _ := unstructured.NestedSlice(w.get(policies, "gold").Object, "status", "conditions")
		require.Equal(t, `1 clusters are chosen; cluster a: label splitter.atoll.dev/weight is "2x", not a whole number below 2^31, counts as absent`,
			conditions[0].(map[string]any)["message"])
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")
	})
}

// After a restart, the Controller cannot list workloads or policies for some time. It writes
// nothing: a workload that it has not read may refer to a dependent.
func TestNotKnownIsNotAbsent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
		opts := placement.Options{Workloads: []schema.GroupVersionResource{deployments, sets}, Linger: time.Second,
			Default: &v1alpha1.PlacementPolicySpec{Mode: v1alpha1.PlacementNone}}
		w.policy("web", "{dependents: true, clusters: [{name: b, max: 0}]}")
		w.policy("db", "{dependents: true, priority: 1, selector: {matchLabels: {app: db}}, clusters: [{name: a, max: 0}]}")
		w.configMap("settings", "")
		w.configMap("own", "")
		web := deployment("web", 2, ", volumes: [{name: v, configMap: {name: settings}}]")
		w.create(deployments, web)
		set := strings.NewReplacer("Deployment", "StatefulSet", "labels: {app: web}}\nspec", "labels: {app: db}}\nspec", "strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 100%}}", "serviceName: db")
		w.create(sets, set.Replace(web))
		w.create(sets, set.Replace(deployment("db", 2, ", volumes: [{name: v, configMap: {name: own}}]")))
		stop := w.startPlacement(opts, cluster("a"), cluster("b"))
		w.rest()
		require.Equal(t, "a,b", w.targets(configMaps, "settings"))
		require.Equal(t, "b", w.targets(configMaps, "own"))
		for _, unknown := range [][]schema.GroupResource{{sets.GroupResource()}, {deployments.GroupResource(), policies.GroupResource()}} {
			stop()
			w.clusters = nil
			w.Reset()
			for _, resource := range unknown {
				w.Inject(regiontest.Fault{Verb: "list", Resource: resource, Times: 20, Do: regiontest.Refuse(503)})
			}
			stop = w.startPlacement(opts, cluster("a"), cluster("b"))
			time.Sleep(time.Hour)
			require.Empty(t, w.writes(), "nothing is written after a restart")
		}
	})
}

// A move that has begun continues, even if the old cluster could be chosen again.
func TestMovesAreNotTurnedBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("maps", "{maxClusters: 1, selector: {}}")
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint("map", i))
			w.configMap(names[i], "")
		}
		a, b := cluster("a"), cluster("b")
		w.startPlacement(placement.Options{}, a)
		w.rest()
		w.set(draining(a), b)
		w.rest()
		w.set(a, b)
		w.rest()
		for _, name := range names {
			require.Equal(t, []string{"NONE -> a", "a -> a,b leaving a"}, w.happened(name))
		}
		time.Sleep(5 * time.Minute)
		for _, name := range names {
			require.Equal(t, []string{"a,b -> b"}, w.happened(name))
		}
	})
}

// A workload that was already divided without a placement is placed in the clusters of its shards.
func TestShardsOfBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s, err := splitter.New(w.api, w.script(cluster("c")), splitter.Options{})
		require.NoError(t, err)
		stop := w.start(s.Start)
		var names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("web", i))
			w.create(deployments, deployment(names[i], 2, ""))
		}
		w.rest()
		stop()
		w.clusters = nil
		all := []splitter.Cluster{cluster("a"), cluster("b"), cluster("c")}
		w.split(all...)
		w.rest()
		require.Len(t, w.shards(), 1, "without a placement nothing changes")
		w.policy("one", "{maxClusters: 1}")
		w.startPlacement(placement.Options{}, all...)
		for _, name := range names {
			require.Equal(t, []string{"NONE -> c"}, w.happened(name))
		}
		require.Equal(t, map[string]int64{"c": 2}, w.shards())
	})
}

func TestWhatIsSomebodyElsesStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("all", "{}")
		w.policy("maps", "{selector: {matchExpressions: [{key: app, operator: Exists}]}, priority: 1}")
		w.configMap("given", "app: x, workloads.kcp.io/cluster: b")
		w.configMap("partly", "app: x, state.workload.kcp.io/b: Sync, state.workload.kcp.io/z: Sync, theirs: stays")
		w.configMap("plain", "no: app")
		given := w.create(deployments, strings.Replace(deployment("given", 2, ""), "{app: web}", "{state.workload.kcp.io/b: Sync}", 1))
		w.startPlacement(placement.Options{Linger: time.Second}, cluster("a"), cluster("b"))
		w.rest()
		require.Empty(t, w.get(configMaps, "given").GetAnnotations())
		require.Equal(t, given.GetResourceVersion(), w.get(deployments, "given").GetResourceVersion())
		require.Empty(t, w.get(configMaps, "plain").GetAnnotations(), "a policy without a selector does not select it")
		require.Equal(t, "a", w.annotation(configMaps, "partly", "placement"), "the label for b is another client's")
		require.Equal(t, "a,b,z", w.targets(configMaps, "partly"))

		w.set(cluster("b"))
		w.rest()
		require.Equal(t, "a,b,z", w.targets(configMaps, "partly"), "no other cluster can be chosen")
		w.set(cluster("a"), cluster("b"), cluster("c"))
		w.patch(policies, "maps", `{"spec":{"clusters":[{"name":"a","max":0}]}}`)
		w.rest()
		labels := w.get(configMaps, "partly").GetLabels()
		require.Equal(t, "b,c,z", w.targets(configMaps, "partly"))
		require.Equal(t, "stays", labels["theirs"])

		// The Controller undoes changes that another client makes to the Controller's labels and
		// annotations.
		w.patch(configMaps, "partly", `{"metadata":{"labels":{"state.workload.kcp.io/c":null},"annotations":{"splitter.atoll.dev/placed-by":"me"}}}`)
		w.rest()
		require.Equal(t, "b,c,z", w.targets(configMaps, "partly"))
		require.Equal(t, "maps", w.annotation(configMaps, "partly", "placed-by"))
	})
}

// Another client copies a shard with its labels under another name. The copy does not keep the
// workload in the copy's cluster.
func TestACopyOfAShardIsNoShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("one", "{maxClusters: 1}")
		w.create(deployments, deployment("web", 2, ""))
		a, b := cluster("a"), cluster("b")
		w.startPlacement(placement.Options{}, a)
		w.split(a)
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		w.works("web--a", 2)
		theirs := w.get(deployments, "web--a")
		theirs.SetName("mine")
		theirs.SetUID("")
		theirs.SetResourceVersion("")
		theirs.SetManagedFields(nil)
		_, err := w.of(deployments).Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "user"})
		require.NoError(t, err)
		w.set(draining(a), b)
		require.Equal(t, []string{"a -> a,b leaving a"}, w.happened("web"))
		w.works("web--b", 2)
		require.Equal(t, []string{"a,b -> b"}, w.happened("web"))
		require.NotNil(t, w.get(deployments, "mine"))
	})
}

// The end of a shard shows in the placement of its parent at once, even if nothing changes the parent.
func TestAShardWakesItsParent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("one", "{maxClusters: 1}")
		w.create(deployments, deployment("web", 2, ""))
		a, b := cluster("a"), cluster("b")
		w.startPlacement(placement.Options{}, a)
		s, err := splitter.New(w.api, w.script(a), splitter.Options{Place: placement.Place})
		require.NoError(t, err)
		stop := w.start(s.Start)
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		stop()
		w.clusters = w.clusters[:1]
		w.set(draining(a), b)
		require.Equal(t, []string{"a -> a,b leaving a"}, w.happened("web"))
		w.remove(deployments, "web--a")
		require.Equal(t, []string{"a,b -> b"}, w.happened("web"))
	})
}

func TestWithoutAPolicyAllStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("first", "{maxClusters: 1, clusterSelector: {matchLabels: {tier: gold}}}")
		w.policy("urgent", "{priority: 7, selector: {matchLabels: {app: none}}}")
		w.create(deployments, deployment("web", 2, ""))
		gold := cluster("a", "tier=gold")
		w.startPlacement(placement.Options{}, gold, cluster("b"))
		w.split(gold, cluster("b"))
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))
		w.remove(policies, "first")
		require.Empty(t, w.happened("web"))
		require.Equal(t, map[string]int64{"a": 2}, w.shards())

		// A policy that cannot be read changes no placement, and no other policy takes its place.
		w.policy("broken", "{priority: 9, selector: {matchExpressions: [{key: app, operator: Near}]}}")
		w.policy("second", "{clusterSelector: {matchLabels: {tier: iron}}}")
		require.Empty(t, w.happened("web"))
		w.remove(policies, "broken")
		require.Equal(t, []string{"a -> a"}, w.happened("web"), "only the deciding policy changes")
		require.Equal(t, "second", w.annotation(deployments, "web", "placed-by"))
		require.Equal(t, map[string]int64{"a": 2}, w.shards(), "the new policy chooses no cluster")
	})
}

// An invalid cluster name in an annotation does not prevent the placement of the object, and causes
// no endless retries.
func TestAMalformedPlacement(t *testing.T) {
	for policy, placed := range map[string]string{"": "a", "{selector: {matchLabels: {team: one}}}": "a,b"} {
		t.Run("policy "+policy, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.create(configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {team: one}, annotations: {splitter.atoll.dev/placement: "/,b ad,a"}}}`)
				if policy != "" {
					w.policy("p", policy)
				}
				w.startPlacement(placement.Options{}, cluster("a"), cluster("b"))
				w.rest()
				require.Equal(t, []string{"a -> " + placed}, w.happened("x"))
				require.Equal(t, placed, w.targets(configMaps, "x"))
				w.Reset()
				time.Sleep(time.Hour)
				require.Empty(t, w.writes())
			})
		})
	}
}

func TestOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		sets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
		w.create(sets, strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "strategy:", "updateStrategy:", ", maxSurge: 100%", "").Replace(deployment("db", 2, "")))
		w.create(core("services"), "{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}")
		w.create(core("secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {app: web}}}")
		w.patch(sets, "db", `{"spec":{"serviceName":"db"}}`)
		w.create(deployments, deployment("web", 2, ""))
		opts := placement.Options{
			Workloads: []schema.GroupVersionResource{sets}, Others: []schema.GroupVersionResource{core("services")}, Workers: 1,
			Default: &v1alpha1.PlacementPolicySpec{Dependents: true},
		}
		opts.Grace, opts.Rejoin = 10*time.Second, 15*time.Second
		w.startPlacement(opts, cluster("a"), cluster("b"))
		require.Equal(t, []string{"NONE -> a,b", "NONE -> a,b"}, w.happened("db"), "the StatefulSet and its Service")
		require.Equal(t, "(default)", w.annotation(sets, "db", "placed-by"))
		require.Empty(t, w.get(deployments, "web").GetAnnotations())
		w.set(cluster("a"), silent(cluster("b")))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.Equal(t, "a,b", w.annotation(sets, "db", "placement"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "a", w.annotation(sets, "db", "placement"), "it has no shard there")
		w.set(cluster("a"), cluster("b"))
		time.Sleep(14 * time.Second)
		synctest.Wait()
		require.Equal(t, "a", w.annotation(sets, "db", "placement"))
		w.rest()
		require.Equal(t, "a,b", w.annotation(sets, "db", "placement"))
	})
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	_, err := placement.New(nil, nil, placement.Options{})
	require.ErrorContains(t, err, "is nil")
	_, err = placement.New(w.api, w.script(), placement.Options{Others: []schema.GroupVersionResource{deployments}})
	require.ErrorContains(t, err, "deployments.apps twice")
	_, err = placement.New(w.api, w.script(), placement.Options{Default: &v1alpha1.PlacementPolicySpec{Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}})
	require.ErrorContains(t, err, "Options.Default")
}
