// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/internal/latetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// world is an API server with a Splitter over clusters that the test sets. It runs in a synctest
// bubble, in virtual time.
type world struct {
	*regiontest.Server
	t        *testing.T
	api      region.API
	split    *splitter.Splitter
	clusters *clustertest.Script
	stop     func() // stops the last splitter started
}

func cluster(name, weight string) splitter.Cluster {
	c := splitter.Cluster{Name: name, Ready: metav1.ConditionTrue}
	if weight != "" {
		c.Labels = map[string]string{"splitter.atoll.dev/weight": weight}
	}
	return c
}

func newAPI(t *testing.T, s *regiontest.Server) region.API {
	t.Helper()
	api, err := region.APIFor(s.Config())
	require.NoError(t, err)
	return api
}

// newLateWorld returns a world whose Splitter observes each change with a delay.
func newLateWorld(t *testing.T, opts splitter.Options, clusters ...splitter.Cluster) *world {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{History: 100000})
	t.Cleanup(s.Close)
	t.Cleanup(func() { time.Sleep(time.Second) }) // a stopped watch reads its last event within a second
	config := s.Config()
	config.Wrap(latetest.Watches(300 * time.Millisecond))
	api, err := region.APIFor(config)
	require.NoError(t, err)
	return newWorldOn(t, s, api, opts, clusters...)
}

func newWorld(t *testing.T, opts splitter.Options, clusters ...splitter.Cluster) *world {
	t.Helper()
	s := regiontest.NewServer(regiontest.Options{History: 100000})
	t.Cleanup(s.Close)
	return newWorldOn(t, s, newAPI(t, s), opts, clusters...)
}

func newWorldOn(t *testing.T, s *regiontest.Server, api region.API, opts splitter.Options, clusters ...splitter.Cluster) *world {
	t.Helper()
	var err error
	w := &world{Server: s, t: t, api: api, clusters: clustertest.NewScript(clusters...)}
	w.split, err = splitter.New(api, w.clusters, opts)
	require.NoError(t, err)
	w.start(w.split)
	return w
}

func (w *world) start(s *splitter.Splitter) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(w.stop)
}

// rest lets 20 seconds of virtual time pass. In this time the Splitter finishes the work that is due.
func (w *world) rest() {
	for range 20 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

func (w *world) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.api.Dynamic().Resource(gvr).Namespace("default")
}

func (w *world) create(gvr schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(w.t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(w.t, obj.UnmarshalJSON(data))
	made, err := w.of(gvr).Create(w.t.Context(), obj, metav1.CreateOptions{FieldManager: "user"})
	require.NoError(w.t, err)
	return made
}

func (w *world) patch(gvr schema.GroupVersionResource, name, patch string) {
	w.t.Helper()
	_, err := w.of(gvr).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "user"})
	require.NoError(w.t, err)
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

func (w *world) list(gvr schema.GroupVersionResource) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.of(gvr).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	return list.Items
}

// works writes the status of a shard as a syncer does. The argument available is the number of the
// shard's desired replicas that are available.
func (w *world) works(name string, available int64) {
	w.t.Helper()
	obj := w.get(deployments, name)
	require.NotNil(w.t, obj, name)
	wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	status := map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": wanted, "updatedReplicas": wanted,
		"readyReplicas": available, "availableReplicas": available, "unavailableReplicas": wanted - available}
	reason := "ReplicaSetUpdated"
	if wanted == available {
		reason = "NewReplicaSetAvailable"
	}
	status["conditions"] = []any{map[string]any{"type": "Progressing", "status": "True", "reason": reason}}
	patch, err := json.Marshal(map[string]any{"status": status})
	require.NoError(w.t, err)
	_, err = w.of(deployments).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "syncer"}, "status")
	require.NoError(w.t, err)
}

// shards returns the desired replicas of all shards, by cluster.
func (w *world) shards() map[string]int64 {
	w.t.Helper()
	m := map[string]int64{}
	for _, d := range w.list(deployments) {
		if c := d.GetLabels()["workloads.kcp.io/cluster"]; c != "" {
			n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
			m[c] = n
		}
	}
	return m
}

// ready returns the column READY of `kubectl get deployments` for the named object.
func (w *world) ready(name string) string {
	w.t.Helper()
	obj := w.get(deployments, name)
	wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	is, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas")
	return fmt.Sprintf("%d/%d", is, wanted)
}

// conditionOf returns a condition as STATUS REASON: MESSAGE.
func (w *world) conditionOf(gvr schema.GroupVersionResource, name, kind string) string {
	w.t.Helper()
	list, _, _ := unstructured.NestedSlice(w.get(gvr, name).Object, "status", "conditions")
	for _, v := range list {
		if c := v.(map[string]any); c["type"] == kind {
			return fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])
		}
	}
	return ""
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

func deployment(name string, replicas int, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  labels: {app: web, app.kubernetes.io/instance: argo-app}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", resources: {requests: {cpu: 1000m}}}]
%s`, name, replicas, strings.Join(more, "\n"))
}
