// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/clustertest"
	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	policies    = v1alpha1.GroupVersion.WithResource("placementpolicies")
)

// world is an API server with a Controller and optionally a Splitter. It runs in a synctest bubble,
// in virtual time.
type world struct {
	*regiontest.Server
	t        *testing.T
	api      atollregion.API
	clusters []*clustertest.Script

	mu     sync.Mutex
	events []event
}

// event is one recorded change of an object.
type event struct{ name, change string }

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	return compile("placementpolicies.splitter.atoll.dev", "clusterplacementpolicies.splitter.atoll.dev")
})

func compile(names ...string) (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	types, err := compiled()
	require.NoError(t, err)
	return worldOf(t, types)
}

func worldOf(t *testing.T, types *regiontest.Definitions) *world {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{History: 100000, Definitions: types})
	t.Cleanup(s.Close)
	api, err := atollregion.APIFor(s.Config())
	require.NoError(t, err)
	return &world{Server: s, t: t, api: api}
}

func (w *world) script(clusters ...splitter.Cluster) *clustertest.Script {
	s := clustertest.NewScript(clusters...)
	w.clusters = append(w.clusters, s)
	return s
}

// set sets the clusters of the Controller and the Splitter.
func (w *world) set(clusters ...splitter.Cluster) {
	for _, s := range w.clusters {
		s.Set(clusters...)
	}
}

// startPlacement starts a Controller, which stops when the test calls stop.
func (w *world) startPlacement(opts placement.Options, clusters ...splitter.Cluster) (stop func()) {
	w.t.Helper()
	opts.Observer = &placement.Observer{Placed: func(_ context.Context, e placement.PlacedEvent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		change := fmt.Sprintf("%s -> %s", list(e.Before), list(e.After))
		if e.Leaving != nil {
			change += " leaving " + list(e.Leaving)
		}
		if e.Err != nil {
			change = e.Err.Error()
		}
		w.events = append(w.events, event{e.Object.Name, change})
	}}
	c, err := placement.New(w.api, w.script(clusters...), opts)
	require.NoError(w.t, err)
	return w.start(c.Start)
}

func list(names []string) string {
	if len(names) == 0 {
		return "NONE"
	}
	return strings.Join(names, ",")
}

func (w *world) split(clusters ...splitter.Cluster) {
	w.t.Helper()
	s, err := splitter.New(w.api, w.script(clusters...), splitter.Options{Place: placement.Place})
	require.NoError(w.t, err)
	w.start(s.Start)
}

func (w *world) start(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return stop
}

// rest lets 20 seconds of virtual time pass. In this time Controller and Splitter finish the work that
// is due.
func (w *world) rest() {
	for range 20 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// happened returns the changes of an object since the previous call, in order.
func (w *world) happened(name string) (changes []string) {
	w.rest()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = slices.DeleteFunc(w.events, func(e event) bool {
		if e.name == name {
			changes = append(changes, e.change)
		}
		return e.name == name
	})
	return changes
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func (w *world) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.api.Dynamic().Resource(gvr).Namespace("default")
}

func (w *world) create(gvr schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	made, err := w.of(gvr).Create(w.t.Context(), unstructuredOf(w.t, manifest), metav1.CreateOptions{FieldManager: "user"})
	require.NoError(w.t, err)
	return made
}

func unstructuredOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	return obj
}

func (w *world) policy(name, spec string) {
	w.t.Helper()
	w.create(policies, fmt.Sprintf("{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: %s}, spec: %s}", name, spec))
}

func (w *world) configMap(name string, labels string) {
	w.t.Helper()
	w.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {%s}}, data: {key: value}}", name, labels))
}

func (w *world) patch(gvr schema.GroupVersionResource, name, patch string) {
	w.t.Helper()
	_, err := w.of(gvr).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "user"})
	require.NoError(w.t, err)
}

func (w *world) remove(gvr schema.GroupVersionResource, name string) {
	w.t.Helper()
	require.NoError(w.t, w.of(gvr).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) get(gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj, err := w.of(gvr).Get(w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return obj
}

// targets returns the clusters that an object's labels name.
func targets(obj *unstructured.Unstructured) string {
	var names []string
	for label, v := range obj.GetLabels() {
		if name, ok := strings.CutPrefix(label, "state.workload.kcp.io/"); ok && v == "Sync" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return list(names)
}

func (w *world) targets(gvr schema.GroupVersionResource, name string) string {
	w.t.Helper()
	return targets(w.get(gvr, name))
}

func (w *world) annotation(gvr schema.GroupVersionResource, name, annotation string) string {
	w.t.Helper()
	return w.get(gvr, name).GetAnnotations()["splitter.atoll.dev/"+annotation]
}

// works reports the status of a shard as a syncer does.
func (w *world) works(name string, available int64) {
	w.t.Helper()
	obj := w.get(deployments, name)
	require.NotNil(w.t, obj, name)
	wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": wanted,
		"updatedReplicas": wanted, "readyReplicas": available, "availableReplicas": available}})
	require.NoError(w.t, err)
	_, err = w.of(deployments).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "syncer"}, "status")
	require.NoError(w.t, err)
}

// shards returns the desired replicas of all shards, by cluster.
func (w *world) shards() map[string]int64 {
	w.t.Helper()
	m := map[string]int64{}
	for _, shard := range w.shardObjects() {
		m[shard.GetLabels()["workloads.kcp.io/cluster"]] = replicasOf(shard)
	}
	return m
}

// shardObjects returns the shards, sorted by name.
func (w *world) shardObjects() (shards []*unstructured.Unstructured) {
	w.t.Helper()
	all, err := w.of(deployments).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range all.Items {
		if all.Items[i].GetLabels()["workloads.kcp.io/cluster"] != "" {
			shards = append(shards, &all.Items[i])
		}
	}
	return shards
}

func replicasOf(shard *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas")
	return n
}

// writes returns the requests since the last Reset that change something.
func (w *world) writes() (writes []string) {
	for _, r := range w.Requests() {
		if !slices.Contains([]string{"get", "list", "watch"}, r.Verb) {
			writes = append(writes, r.Verb+" "+r.Path)
		}
	}
	return writes
}

func cluster(name string, labels ...string) splitter.Cluster {
	c := splitter.Cluster{Name: name, Ready: metav1.ConditionTrue, Labels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		c.Labels[k] = v
	}
	return c
}

func draining(c splitter.Cluster) splitter.Cluster {
	c.EvictAfter = time.Unix(1, 0)
	return c
}

func silent(c splitter.Cluster) splitter.Cluster {
	c.Ready = metav1.ConditionUnknown
	return c
}

func deployment(name string, replicas int, podSpec string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, labels: {app: web}}
spec:
  replicas: %d
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 100%%}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]%s}
`, name, replicas, podSpec)
}
