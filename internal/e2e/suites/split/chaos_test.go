// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// everywhere holds the labels that sync an object to all three clusters.
const everywhere = `{state.workload.kcp.io/cluster-1: Sync, state.workload.kcp.io/cluster-2: Sync, state.workload.kcp.io/cluster-3: Sync}`

// In each of ATOLL_SPLIT_CHAOS rounds one server is stopped, another is cut off the network, the
// process is killed twice at random moments, CRDs are created and deleted, and workloads are
// created, changed, rescheduled, drained and deleted. In the end the upstream and the clusters
// agree: no object is lost or left over, permanent objects keep their UIDs, and foreign objects are
// unchanged.
func TestChaos(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newWorld(t, true)
	w.random = rand.New(rand.NewPCG(seed, 0))
	w.register("cluster-3", 4)
	w.furnish()
	lives := w.lives()
	sides := append([]string{"upstream"}, clusterNames...)
	rounds, midst := ctltest.Count(t, "ATOLL_SPLIT_CHAOS", 4), 0
	for i := range rounds {
		begun := time.Now()
		stopped, cut := sides[i%4], sides[(i+1+i/4%3)%4]
		midst += w.round(i, stopped, cut)
		t.Logf("round %d: %s stopped, %s cut off: %s", i, stopped, cut, time.Since(begun).Round(time.Millisecond))
	}
	begun := time.Now()
	w.settle()
	t.Logf("%d kills, %d of them in the midst of a placement; all is equal %s after the last change", 2*rounds+1, midst+1, time.Since(begun).Round(time.Millisecond))
	require.Equal(t, lives, w.lives())
	w.rests(clusterNames...)
}

// furnish creates the permanent objects. In each cluster it also creates two foreign objects: a
// Deployment, and a ConfigMap with the name of an upstream ConfigMap.
func (w *world) furnish() {
	w.create(policies, "{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: all}, spec: {dependents: true}}")
	w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: followed}, data: {round: none}}")
	w.create(deployments, deployment("web", 15))
	w.create(statefulSets, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 6, serviceName: db, selector: {matchLabels: {app: db}}, template: %s}}",
		fmt.Sprintf(pod, "db", "volumes: [{name: v, configMap: {name: followed}}],")))
	w.create(daemonSets, fmt.Sprintf("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: %s}}",
		fmt.Sprintf(pod, "agent", "")))
	w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: "+everywhere+"}, data: {round: none}}")
	w.create(secrets, "{apiVersion: v1, kind: Secret, metadata: {name: key, labels: "+everywhere+"}, data: {key: a2V5}}")
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	for _, c := range clusterNames {
		w.createIn(c, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs}, data: {whose: theirs}}")
		w.createIn(c, deployments, deployment("alone", 1))
	}
	w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, labels: "+everywhere+"}, data: {whose: ours}}")
	for _, side := range []string{"upstream", "cluster-1"} {
		w.learn(side, "widgets", "Widget")
	}
	w.create(widgets, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: wheel, labels: {state.workload.kcp.io/cluster-1: Sync}}, spec: {size: 1}}")
	w.copied()
}

// createIn creates a foreign object in a cluster.
func (w *world) createIn(side string, gvr schema.GroupVersionResource, manifest string) {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	_, err := w.of(side, gvr).Create(w.t.Context(), obj, metav1.CreateOptions{FieldManager: "theirs"})
	require.NoError(w.t, err)
}

// learn creates a type, after any deletion of the type has ended. It waits until the type is
// served, which is a moment after the type is established.
func (w *world) learn(side, plural, kind string) {
	w.t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal(fmt.Appendf(nil, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.example.com},
		spec: {group: example.com, scope: Namespaced, names: {plural: %[1]s, kind: %[2]s}, versions: [{name: v1, served: true, storage: true,
		schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, plural, kind), &crd.Object))
	planetest.Eventually(w.t, long, plural+" are known", func(ctx context.Context) error {
		_, err := w.clients[side].Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		is, err := w.clients[side].Resource(definitions).Get(ctx, crd.GetName(), metav1.GetOptions{})
		if err == nil && (is.GetDeletionTimestamp() != nil || conditionOf(is, "Established") != "True InitialNamesAccepted") {
			err = fmt.Errorf("%v", is.Object["status"])
		}
		if err == nil {
			_, err = w.of(side, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}).List(ctx, metav1.ListOptions{})
		}
		return err
	})
}

func (w *world) forget(side, plural string) {
	w.t.Helper()
	require.NoError(w.t, w.clients[side].Resource(definitions).Delete(w.t.Context(), plural+".example.com", metav1.DeleteOptions{}))
}

// round stops one server and cuts another server off the network. It changes objects meanwhile, and
// brings the servers back. It returns how often the process was killed in the middle of a
// placement.
func (w *world) round(i int, stopped, cut string) (midst int) {
	w.churn(i)
	before := w.version(stopped)
	w.change(i)
	outlived := w.random.IntN(2) == 0 // kill the process before the cut
	if !outlived {
		w.boxes[cut].cut()
	}
	require.NoError(w.t, w.planes[stopped].Kill(w.t.Context()))
	if stopped != "upstream" {
		w.change(i + 1)
	}
	midst += w.dies()
	if outlived {
		w.moment()
		w.boxes[cut].cut()
	}
	require.NoError(w.t, w.planes[stopped].Restart(w.t.Context()))
	w.expires(stopped, before)
	w.change(i + 2)
	w.boxes[cut].mend()
	return midst + w.dies()
}

// dies kills the process at a random moment and starts it again. It returns 1 if a parent was then
// being moved off a cluster, otherwise 0.
func (w *world) dies() (midst int) {
	w.moment()
	w.manager.kill(w.t)
	midst = w.leaving()
	w.manager.start(w.t)
	return midst
}

// moment sleeps for a random time.
func (w *world) moment() { time.Sleep(time.Duration(w.random.IntN(1200)) * time.Millisecond) }

// churn deletes one type, and creates another type and a workload, if i is even. If i is odd, it
// reverts these changes.
func (w *world) churn(i int) {
	if i%2 == 0 {
		w.forget("cluster-1", "widgets")
		w.learn("upstream", "gadgets", "Gadget")
		w.create(deployments, deployment(fmt.Sprint("brief-", i), 4))
		return
	}
	w.learn("cluster-1", "widgets", "Widget")
	w.forget("upstream", "gadgets")
	w.delete("upstream", deployments, fmt.Sprint("brief-", i-1))
}

func (w *world) change(i int) {
	w.patch(configMaps, "settings", fmt.Sprintf(`{"data":{"round":"%d"}}`, i))
	w.patch(configMaps, "followed", fmt.Sprintf(`{"data":{"round":"%d"}}`, i))
	w.patch(widgets, "wheel", fmt.Sprintf(`{"spec":{"size":%d}}`, i))
	switch i % 5 {
	case 0:
		w.patch(deployments, "web", fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}},"spec":{"replicas":%d}}`, i, 10+w.random.IntN(10)))
	case 1:
		w.patchTarget("cluster-3", fmt.Sprintf(`{"metadata":{"labels":{"splitter.atoll.dev/weight":"%d"}}}`, 1+w.random.IntN(8)))
	case 2:
		w.patch(statefulSets, "db", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+w.random.IntN(12)))
	case 3:
		w.patchTarget("cluster-2", map[bool]string{true: `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`, false: `{"spec":{"evictAfter":null}}`}[w.random.IntN(2) == 0])
	case 4:
		w.allow(1+w.random.IntN(3), w.random.IntN(3))
	}
}

// version returns the resourceVersion of a list, and then writes an object, so that the returned
// version is no longer the latest. expires uses it for a watch.
func (w *world) version(side string) string {
	w.t.Helper()
	list, err := w.of(side, deployments).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	_, err = w.clients[side].Resource(namespaces).Patch(w.t.Context(), w.namespace, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"seen":"%s"}}}`, list.GetResourceVersion()), metav1.PatchOptions{FieldManager: "theirs"})
	require.NoError(w.t, err)
	return list.GetResourceVersion()
}

// expires requires that a restarted server accepts no watch that begins at a version from before
// the stop. So each client must list anew.
func (w *world) expires(side, version string) {
	w.t.Helper()
	planetest.Eventually(w.t, long, "watches of "+side+" have expired", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		changes, err := w.of(side, deployments).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer changes.Stop()
		select {
		case e := <-changes.ResultChan():
			if e.Type == watch.Error && apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
				return nil
			}
			return fmt.Errorf("%s of %T", e.Type, e.Object)
		case <-time.After(time.Second):
			return fmt.Errorf("a watch of %s goes on", version)
		}
	})
}

// settle reverts the changes of the rounds. It moves all parents off cluster-2, and kills the
// process meanwhile (see leaves). Then it waits until the upstream and the clusters agree.
func (w *world) settle() {
	w.learn("cluster-1", "widgets", "Widget")
	list, err := w.of("upstream", deployments).List(w.t.Context(), metav1.ListOptions{LabelSelector: "!splitter.atoll.dev/parent"})
	require.NoError(w.t, err)
	for _, obj := range list.Items {
		if obj.GetName() != "web" && obj.GetDeletionTimestamp() == nil {
			w.delete("upstream", deployments, obj.GetName())
		}
	}
	w.patchTarget("cluster-2", `{"spec":{"evictAfter":null}}`)
	w.patchTarget("cluster-3", `{"metadata":{"labels":{"splitter.atoll.dev/weight":"4"}}}`)
	w.patch(deployments, "web", `{"spec":{"replicas":15}}`)
	w.patch(statefulSets, "db", `{"spec":{"replicas":9}}`)
	// From here on the available replicas are counted, so a slow cluster must not count as lost.
	w.manager.stop(w.t)
	w.manager.grace = grace
	w.manager.start(w.t)
	w.leaves()
	w.divided(statefulSets, "db", map[string]int{"cluster-1": 3, "cluster-3": 6})
	w.eventually(daemonSets, "agent", "runs in two clusters", func(_ context.Context, agent *unstructured.Unstructured) error {
		if n := number(agent, "status", "numberAvailable"); n != 2 {
			return fmt.Errorf("numberAvailable is %d", n)
		}
		return nil
	})
	w.copied()
	planetest.Eventually(w.t, long, "all is placed", w.placed)
	planetest.Eventually(w.t, long, "all sides are equal", w.equal)
}

// copied waits until the downstream ConfigMaps, Secrets and widgets equal the upstream objects.
func (w *world) copied() {
	w.t.Helper()
	same := func(ctx context.Context, cluster string, gvr schema.GroupVersionResource, name, field string) error {
		up, err := w.of("upstream", gvr).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		down, err := w.of(cluster, gvr).Get(ctx, name, metav1.GetOptions{})
		if err == nil && fmt.Sprint(up.Object[field]) != fmt.Sprint(down.Object[field]) {
			err = fmt.Errorf("%s of %s is %v in %s, not %v", field, name, down.Object[field], cluster, up.Object[field])
		}
		return err
	}
	planetest.Eventually(w.t, long, "copies are as they should be", func(ctx context.Context) error {
		for _, c := range clusterNames {
			for gvr, name := range map[schema.GroupVersionResource]string{configMaps: "settings", secrets: "key"} {
				if err := same(ctx, c, gvr, name, "data"); err != nil {
					return err
				}
			}
		}
		return same(ctx, "cluster-1", widgets, "wheel", "spec")
	})
}

// equal returns an error if a workload is left over upstream, or if the workloads of a cluster are
// not exactly those that the upstream has for the cluster.
func (w *world) equal(ctx context.Context) error {
	for _, gvr := range []schema.GroupVersionResource{deployments, statefulSets, daemonSets} {
		want := map[string]map[string]bool{}
		for _, c := range clusterNames {
			want[c] = map[string]bool{}
			if gvr == deployments {
				want[c]["alone"] = true
			}
		}
		list, err := w.of("upstream", gvr).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, obj := range list.Items {
			c := obj.GetLabels()["workloads.kcp.io/cluster"]
			if parent := parents[gvr]; c == "" && obj.GetName() != parent || c != "" && obj.GetAnnotations()["splitter.atoll.dev/parent-name"] != parent {
				return fmt.Errorf("%s %s is left over upstream, with finalizers %v", gvr.Resource, obj.GetName(), obj.GetFinalizers())
			}
			if c != "" {
				want[c][obj.GetName()] = true
			}
		}
		for _, c := range clusterNames {
			list, err := w.of(c, gvr).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			have := map[string]bool{}
			for _, obj := range list.Items {
				have[obj.GetName()] = true
			}
			if !maps.Equal(have, want[c]) {
				return fmt.Errorf("%s has the %s %v, not %v", c, gvr.Resource, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want[c])))
			}
		}
	}
	return nil
}

// lives returns the UIDs of all permanent and foreign objects. For a foreign Deployment it adds the
// generation and the labels, for a foreign ConfigMap the resourceVersion.
func (w *world) lives() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	note := func(side string, client dynamic.ResourceInterface, name string, of func(*unstructured.Unstructured) string) {
		obj, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
		require.NoError(w.t, err, "%s in %s", name, side)
		all[side+" "+obj.GetKind()+" "+name] = of(obj)
	}
	uid := func(obj *unstructured.Unstructured) string { return string(obj.GetUID()) }
	for gvr, name := range map[schema.GroupVersionResource]string{deployments: "web", statefulSets: "db", daemonSets: "agent", widgets: "wheel"} {
		note("upstream", w.of("upstream", gvr), name, uid)
	}
	note("upstream", w.of("upstream", configMaps), "followed", uid)
	for _, c := range clusterNames {
		note("upstream", w.clients["upstream"].Resource(syncTargets), c, uid)
	}
	for side, client := range w.clients {
		note(side, client.Resource(namespaces), w.namespace, uid)
		note(side, w.of(side, configMaps), "settings", uid)
		note(side, w.of(side, secrets), "key", uid)
		if side == "upstream" {
			continue
		}
		note(side, w.of(side, deployments), "alone", func(obj *unstructured.Unstructured) string {
			return fmt.Sprint(obj.GetUID(), " ", obj.GetGeneration(), " ", obj.GetLabels())
		})
		note(side, w.of(side, configMaps), "theirs", func(obj *unstructured.Unstructured) string {
			return fmt.Sprint(obj.GetUID(), " ", obj.GetResourceVersion())
		})
	}
	return all
}
