// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/clustertest"
	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	sets        = v1alpha1.GroupVersion.WithResource("clusterdaemonsets")
)

// world is an API server with Controllers. It runs in a synctest bubble, in virtual time.
type world struct {
	*regiontest.Server
	t        *testing.T
	api      atollregion.API
	clusters []*clustertest.Script
}

func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crd, err := config.CRD("clusterdaemonsets.splitter.atoll.dev")
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(crd)
})

func newWorld(t *testing.T) *world {
	t.Helper()
	types, err := compiled()
	require.NoError(t, err)
	s := regiontest.NewServer(regiontest.Options{History: 100000, Definitions: types})
	t.Cleanup(s.Close)
	api, err := atollregion.APIFor(s.Config())
	require.NoError(t, err)
	return &world{Server: s, t: t, api: api}
}

// run starts a Controller, which stops when the test calls stop.
func (w *world) run(opts clusterdaemonset.Options, clusters ...splitter.Cluster) (stop func()) {
	w.t.Helper()
	s := clustertest.NewScript(clusters...)
	w.clusters = append(w.clusters, s)
	c, err := clusterdaemonset.New(w.api, s, opts)
	require.NoError(w.t, err)
	return w.start(c.Start)
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

// set sets the clusters of all Controllers.
func (w *world) set(clusters ...splitter.Cluster) {
	for _, s := range w.clusters {
		s.Set(clusters...)
	}
}

// rest lets 20 seconds of virtual time pass. In this time Controllers finish the work that is due.
func (w *world) rest() {
	for range 20 {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

func (w *world) of(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.api.Dynamic().Resource(gvr).Namespace("default")
}

func objectOf(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	return obj
}

func (w *world) create(gvr schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	made, err := w.of(gvr).Create(w.t.Context(), objectOf(w.t, manifest), metav1.CreateOptions{FieldManager: "user"})
	require.NoError(w.t, err)
	return made
}

func (w *world) patch(gvr schema.GroupVersionResource, name, patch string, subresources ...string) {
	w.t.Helper()
	_, err := w.of(gvr).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "user"}, subresources...)
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

// copies returns the names of all Deployments, each with its cluster, sorted.
func (w *world) copies() (names []string) {
	w.t.Helper()
	all, err := w.of(deployments).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range all.Items {
		names = append(names, all.Items[i].GetName()+"@"+all.Items[i].GetLabels()["workloads.kcp.io/cluster"])
	}
	slices.Sort(names)
	return names
}

// works reports the status of Deployments as their clusters' syncers do.
func (w *world) works(ready int64, names ...string) {
	w.t.Helper()
	for _, name := range names {
		obj := w.get(deployments, name)
		require.NotNil(w.t, obj, name)
		wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": wanted,
			"updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}})
		require.NoError(w.t, err)
		w.patch(deployments, name, string(patch), "status")
	}
}

// status returns READY/DESIRED of a ClusterDaemonSet, with the unreachable clusters if there are any, and the status, reason
// and message of its condition Ready.
func (w *world) status(name string) string {
	w.t.Helper()
	w.rest()
	obj := w.get(sets, name)
	require.NotNil(w.t, obj)
	n := func(field string) int64 { v, _, _ := unstructured.NestedInt64(obj.Object, "status", field); return v }
	text := fmt.Sprintf("%d/%d", n("readyClusters"), n("desiredClusters"))
	if unknown := n("unknownClusters"); unknown > 0 {
		text += fmt.Sprintf(" (%d unknown)", unknown)
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	require.Len(w.t, conditions, 1)
	c := conditions[0].(map[string]any)
	require.Equal(w.t, "Ready", c["type"])
	require.Equal(w.t, obj.GetGeneration(), c["observedGeneration"])
	require.Equal(w.t, obj.GetGeneration(), n("observedGeneration"))
	return strings.TrimSpace(fmt.Sprintf("%s %v %v: %v", text, c["status"], c["reason"], c["message"]))
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
		maps.Copy(c.Labels, map[string]string{k: v})
	}
	return c
}

func draining(c splitter.Cluster) splitter.Cluster {
	c.EvictAfter = time.Unix(1, 0)
	return c
}

func cordoned(c splitter.Cluster) splitter.Cluster {
	c.Unschedulable = true
	return c
}

func silent(c splitter.Cluster) splitter.Cluster {
	c.Ready = metav1.ConditionUnknown
	return c
}

// agent returns a ClusterDaemonSet whose spec has the additional fields.
func agent(name, fields string) string {
	return fmt.Sprintf(`
apiVersion: splitter.atoll.dev/v1alpha1
kind: ClusterDaemonSet
metadata: {name: %s, labels: {team: edge, argocd.argoproj.io/instance: x}, annotations: {note: hello, kubectl.kubernetes.io/last-applied-configuration: x}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent:1}]}
  %s
`, name, fields)
}
