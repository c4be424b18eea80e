// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	policies = v1alpha1.GroupVersion.WithResource("placementpolicies")

	// parents are the permanent workloads of chaos. The pods of db refer to the ConfigMap
	// "followed".
	parents = map[schema.GroupVersionResource]string{deployments: "web", statefulSets: "db", daemonSets: "agent"}
)

// allow makes the policy exclude the cluster whose number is but. most limits the number of other
// clusters in which the policy places parents; zero means no limit.
func (w *world) allow(but, most int) {
	w.t.Helper()
	w.patch(policies, "all", fmt.Sprintf(`{"spec":{"clusters":[{"name":"cluster-%d","max":0}],"maxClusters":%d}}`, but, most))
}

// leaving returns 1 if a parent is being moved off a cluster. Otherwise, or if the parents cannot
// be read, it returns 0.
func (w *world) leaving() int {
	for gvr, name := range parents {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		obj, err := w.of("upstream", gvr).Get(ctx, name, metav1.GetOptions{})
		cancel()
		if err == nil && obj.GetAnnotations()[v1alpha1.LeavingAnnotation] != "" {
			return 1
		}
	}
	return 0
}

// leaves moves all parents off cluster-2, and kills the process while web is being moved. The
// available replicas must stay within the budget.
func (w *world) leaves() {
	w.t.Helper()
	w.patch(policies, "all", `{"spec":{"clusters":null,"maxClusters":null}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	fewest := w.least("web", clusterNames, func() {
		ctx, cancel := context.WithTimeout(w.t.Context(), long)
		defer cancel()
		changes, err := w.of("upstream", deployments).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=web"})
		require.NoError(w.t, err)
		defer changes.Stop()
		w.allow(2, 0)
		goes := func(e watch.Event) bool {
			obj, ok := e.Object.(*unstructured.Unstructured)
			return ok && slices.Contains(strings.Split(obj.GetAnnotations()[v1alpha1.LeavingAnnotation], ","), "cluster-2")
		}
		for e := range changes.ResultChan() {
			if goes(e) {
				w.manager.kill(w.t)
				w.manager.start(w.t)
				w.divided(deployments, "web", map[string]int{"cluster-1": 5, "cluster-3": 10})
				return
			}
		}
		require.Fail(w.t, "the watch has ended, and web was not being moved")
	})
	require.GreaterOrEqual(w.t, fewest, budget)
}

// placed returns an error unless the parents and the ConfigMap "followed" are placed in the first
// and the third cluster: the parents by the policy "all", the ConfigMap because a parent refers to
// it.
func (w *world) placed(ctx context.Context) error {
	in := []string{"cluster-1", "cluster-3"}
	is := func(obj *unstructured.Unstructured, by string) error {
		a := obj.GetAnnotations()
		if a[v1alpha1.PlacementAnnotation] != strings.Join(in, ",") || a[v1alpha1.LeavingAnnotation] != "" || a[v1alpha1.PlacedByAnnotation] != by {
			return fmt.Errorf("%s %s is placed by %v", obj.GetKind(), obj.GetName(), a)
		}
		return nil
	}
	for gvr, name := range parents {
		obj, err := w.of("upstream", gvr).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = is(obj, "all")
		}
		if err != nil {
			return err
		}
	}
	followed, err := w.of("upstream", configMaps).Get(ctx, "followed", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := is(followed, v1alpha1.PlacedByReference); err != nil {
		return err
	}
	labels := map[string]string{}
	for _, c := range in {
		labels[syncerv1alpha1.StateLabelPrefix+c] = syncerv1alpha1.StateSync
	}
	if !maps.Equal(followed.GetLabels(), labels) {
		return fmt.Errorf("followed has the labels %v", followed.GetLabels())
	}
	for _, c := range clusterNames {
		down, err := w.of(c, configMaps).Get(ctx, "followed", metav1.GetOptions{})
		switch {
		case !slices.Contains(in, c) && apierrors.IsNotFound(err):
		case err != nil:
			return err
		case !slices.Contains(in, c):
			return fmt.Errorf("followed is in %s, with finalizers %v", c, down.GetFinalizers())
		case fmt.Sprint(down.Object["data"]) != fmt.Sprint(followed.Object["data"]):
			return fmt.Errorf("followed is %v in %s", down.Object["data"], c)
		}
	}
	// The placement controller does not place these.
	for gvr, name := range map[schema.GroupVersionResource]string{configMaps: "settings", secrets: "key"} {
		obj, err := w.of("upstream", gvr).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if a, ok := obj.GetAnnotations()[v1alpha1.PlacementAnnotation]; ok {
			return fmt.Errorf("%s is placed in %q", name, a)
		}
	}
	return nil
}
