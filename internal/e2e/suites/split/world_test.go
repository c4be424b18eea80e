// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const long = 3 * time.Minute

var (
	clusterNames = []string{"cluster-1", "cluster-2", "cluster-3"}

	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	daemonSets   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	jobs         = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	cronJobs     = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	kinds        = []schema.GroupVersionResource{deployments, statefulSets, daemonSets, jobs, cronJobs}

	syncTargets = syncerv1alpha1.GroupVersion.WithResource("synctargets")
)

// world is an upstream, three clusters that run workloads, and the process that connects them.
type world struct {
	t           *testing.T
	planes      map[string]*plane.Plane
	clients     map[string]dynamic.Interface
	boxes       map[string]*box   // between the process and each plane
	kubeconfigs map[string][]byte // that lead to the boxes
	namespace   string
	manager     *manager
	random      *rand.Rand // set by chaos
}

// newWorld starts a world. With policies, parents are placed by PlacementPolicies, otherwise in all
// clusters.
func newWorld(t *testing.T, policies bool) *world {
	t.Helper()
	options := []plane.Options{plane.Upstream()}
	for _, name := range clusterNames {
		options = append(options, plane.Options{Name: name, Pods: true})
	}
	w := &world{t: t, planes: map[string]*plane.Plane{}, clients: map[string]dynamic.Interface{}, boxes: map[string]*box{}, kubeconfigs: map[string][]byte{}}
	dir := t.TempDir()
	for _, p := range planetest.NewAll(t, options...) {
		w.planes[p.Name()] = p
		w.clients[p.Name()] = planetest.Dynamic(t, p.Config())
		b, url := newBox(t, p.Server())
		w.boxes[p.Name()], w.kubeconfigs[p.Name()] = b, bytes.ReplaceAll(p.Kubeconfig(), []byte(p.Server()), []byte(url))
		require.NoError(t, os.WriteFile(filepath.Join(dir, p.Name()+".kubeconfig"), w.kubeconfigs[p.Name()], 0o600))
	}
	up := w.planes["upstream"]
	api, err := region.APIFor(up.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{syncerv1alpha1.GroupVersion.Group, v1alpha1.GroupName}})
	require.NoError(t, err)
	w.namespace = planetest.Namespace(t, up)
	w.manager = newManager(t, dir, up.Logs(), policies)
	w.register("cluster-1", 2)
	w.register("cluster-2", 3)
	for _, gvr := range kinds {
		planetest.Eventually(t, long, gvr.Resource+" are learned", func(ctx context.Context) error {
			_, err := w.of("upstream", gvr).List(ctx, metav1.ListOptions{})
			return err
		})
	}
	return w
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	inner := *w
	inner.t = t
	return &inner
}

func (w *world) register(name string, weight int) {
	w.t.Helper()
	_, err := w.clients["upstream"].Resource(syncTargets).Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"splitter.atoll.dev/weight": fmt.Sprint(weight)}},
		"spec":     map[string]any{"kubeconfig": string(w.kubeconfigs[name])},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) patchTarget(name, patch string) {
	w.t.Helper()
	_, err := w.clients["upstream"].Resource(syncTargets).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func (w *world) of(side string, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	return w.clients[side].Resource(gvr).Namespace(w.namespace)
}

// create creates an object upstream.
func (w *world) create(gvr schema.GroupVersionResource, manifest string) {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	_, err := w.of("upstream", gvr).Create(w.t.Context(), obj, metav1.CreateOptions{FieldManager: "user", FieldValidation: "Strict"})
	require.NoError(w.t, err)
}

func (w *world) patch(gvr schema.GroupVersionResource, name, patch string, subresources ...string) {
	w.t.Helper()
	_, err := w.of("upstream", gvr).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "user"}, subresources...)
	require.NoError(w.t, err)
}

func (w *world) delete(side string, gvr schema.GroupVersionResource, name string) {
	w.t.Helper()
	require.NoError(w.t, w.of(side, gvr).Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}

// replaced deletes an object and waits until a new object has its name.
func (w *world) replaced(side string, gvr schema.GroupVersionResource, name string) {
	w.t.Helper()
	before, err := w.of(side, gvr).Get(w.t.Context(), name, metav1.GetOptions{})
	require.NoError(w.t, err)
	w.delete(side, gvr, name)
	planetest.Eventually(w.t, long, name+" is made anew", func(ctx context.Context) error {
		now, err := w.of(side, gvr).Get(ctx, name, metav1.GetOptions{})
		if err == nil && now.GetUID() == before.GetUID() {
			err = fmt.Errorf("it is being deleted, with finalizers %v", now.GetFinalizers())
		}
		return err
	})
}

func number(obj *unstructured.Unstructured, path ...string) int {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return int(n)
}

// conditionOf returns "STATUS REASON" of a condition.
func conditionOf(obj *unstructured.Unstructured, kind string) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, v := range list {
		if c, ok := v.(map[string]any); ok && c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

// eventually waits until holds returns nil for the upstream parent that is called name.
func (w *world) eventually(gvr schema.GroupVersionResource, name, what string, holds func(ctx context.Context, parent *unstructured.Unstructured) error) {
	w.t.Helper()
	var last error
	planetest.Eventually(w.t, long, name+" "+what, func(ctx context.Context) error {
		parent, err := w.of("upstream", gvr).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = holds(ctx, parent)
		}
		if ctx.Err() == nil {
			last = err
		}
		return last
	})
}

// divided waits until a Deployment or StatefulSet has exactly these shards, upstream and in the
// clusters. All their replicas must be available, and the status of the parent must agree.
func (w *world) divided(gvr schema.GroupVersionResource, name string, want map[string]int) {
	w.t.Helper()
	total := 0
	for _, n := range want {
		total += n
	}
	w.eventually(gvr, name, fmt.Sprintf("is divided as %v", want), func(ctx context.Context, parent *unstructured.Unstructured) error {
		for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "updatedReplicas"} {
			if n := number(parent, "status", field); n != total {
				return fmt.Errorf("%s are %d of %d: %v", field, n, total, parent.Object["status"])
			}
		}
		if seen := number(parent, "status", "observedGeneration"); int64(seen) != parent.GetGeneration() {
			return fmt.Errorf("generation %d of %d is observed", seen, parent.GetGeneration())
		}
		return w.shardsAre(ctx, gvr, name, want)
	})
}

func (w *world) shardsAre(ctx context.Context, gvr schema.GroupVersionResource, name string, want map[string]int) error {
	have := map[string]int{}
	list, err := w.of("upstream", gvr).List(ctx, metav1.ListOptions{LabelSelector: "splitter.atoll.dev/parent"})
	if err != nil {
		return err
	}
	for _, obj := range list.Items {
		if obj.GetAnnotations()["splitter.atoll.dev/parent-name"] == name {
			have[obj.GetLabels()["workloads.kcp.io/cluster"]] = number(&obj, "spec", "replicas")
		}
	}
	if !maps.Equal(have, want) {
		return fmt.Errorf("shards are %v", have)
	}
	for cluster, n := range want {
		obj, err := w.of(cluster, gvr).Get(ctx, splitter.ShardName(name, cluster), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is, of := number(obj, "status", "availableReplicas"), number(obj, "spec", "replicas"); is != n || of != n {
			return fmt.Errorf("%d of %d are available in %s, want %d", is, of, cluster, n)
		}
	}
	return nil
}

// gone waits until no object of a parent is left, upstream and in the clusters.
func (w *world) gone(gvr schema.GroupVersionResource, name string, clusters ...string) {
	w.t.Helper()
	planetest.Eventually(w.t, long, name+" is gone", func(ctx context.Context) error {
		for _, side := range append([]string{"upstream"}, clusters...) {
			list, err := w.of(side, gvr).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, obj := range list.Items {
				if obj.GetName() == name || strings.HasPrefix(obj.GetName(), name+"--") {
					return fmt.Errorf("%s is in %s, with finalizers %v", obj.GetName(), side, obj.GetFinalizers())
				}
			}
		}
		return nil
	})
}

// objects returns the objects upstream and in the clusters, by side, resource and name.
func (w *world) objects(ctx context.Context, clusters ...string) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	for _, side := range append([]string{"upstream"}, clusters...) {
		for _, gvr := range kinds {
			list, err := w.of(side, gvr).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				all[side+" "+gvr.Resource+" "+list.Items[i].GetName()] = &list.Items[i]
			}
		}
	}
	return all, nil
}

// rests requires that no object changes for a while, upstream or in the clusters. It returns the
// objects.
func (w *world) rests(clusters ...string) (after map[string]*unstructured.Unstructured) {
	w.t.Helper()
	planetest.Eventually(w.t, long+still(w.t), "nothing is written", func(ctx context.Context) error {
		before, err := w.objects(ctx, clusters...)
		if err != nil {
			return err
		}
		select {
		case <-time.After(still(w.t)): // inactivity can only be observed over time
		case <-ctx.Done():
			return ctx.Err()
		}
		if after, err = w.objects(ctx, clusters...); err != nil {
			return err
		}
		var changed []string
		for key, obj := range after {
			if was := before[key]; was == nil || was.GetResourceVersion() != obj.GetResourceVersion() {
				changed = append(changed, key)
			}
		}
		for key := range before {
			if after[key] == nil {
				changed = append(changed, key)
			}
		}
		if changed == nil {
			return nil
		}
		slices.Sort(changed)
		return fmt.Errorf("%v have changed", changed)
	})
	return after
}

// still returns the time for which no object may change at rest: ATOLL_REST, or 5 seconds, in which
// each periodic task runs twice.
func still(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ATOLL_REST")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "ATOLL_REST")
	return d
}
