// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var daemons = v1alpha1.GroupVersion.WithResource("clusterdaemonsets")

// everyCluster runs a ClusterDaemonSet in all three clusters, changes its template, drains a cluster and takes it back,
// and kills the manager in between. At each point exactly the chosen clusters have all replicas ready.
func (w *world) everyCluster() {
	w.create(daemons, fmt.Sprintf(`{apiVersion: splitter.atoll.dev/v1alpha1, kind: ClusterDaemonSet, metadata: {name: edge}, spec: {replicasPerCluster: 2, selector: {matchLabels: {app: edge}}, template: %s}}`,
		fmt.Sprintf(pod, "edge", "")))
	w.runsIn("edge", 2, clusterNames...)
	w.replaced("upstream", deployments, "edge--cluster-2")
	w.patch(daemons, "edge", `{"spec":{"replicasPerCluster":1,"template":{"metadata":{"annotations":{"round":"2"}}}}}`)
	w.manager.kill(w.t)
	w.manager.start(w.t)
	w.runsIn("edge", 1, clusterNames...)
	w.patchTarget("cluster-1", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`)
	w.runsIn("edge", 1, clusterNames[1:]...)
	w.patchTarget("cluster-1", `{"spec":{"evictAfter":null}}`)
	w.runsIn("edge", 1, clusterNames...)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	w.rests(clusterNames...)
	w.delete("upstream", daemons, "edge")
	w.gone(deployments, "edge", clusterNames...)
	planetest.Eventually(w.t, long, "edge is gone", func(ctx context.Context) error {
		list, err := w.of("upstream", daemons).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("it has the finalizers %v", list.Items[0].GetFinalizers())
		}
		return err
	})
}

// runsIn waits until a ClusterDaemonSet reports that it is ready, and runs with n replicas in exactly these clusters.
func (w *world) runsIn(name string, n int, clusters ...string) {
	w.t.Helper()
	w.eventually(daemons, name, fmt.Sprintf("runs in %v", clusters), func(ctx context.Context, set *unstructured.Unstructured) error {
		if c := conditionOf(set, "Ready"); c != "True Complete" || int64(number(set, "status", "observedGeneration")) != set.GetGeneration() ||
			number(set, "status", "desiredClusters") != len(clusters) || number(set, "status", "readyClusters") != len(clusters) {
			return fmt.Errorf("Ready is %s: %v", c, set.Object["status"])
		}
		running := 0
		for _, c := range clusterNames {
			list, err := w.of(c, deployments).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, obj := range list.Items {
				if obj.GetName() != name+"--"+c {
					continue
				}
				if ready, round := number(&obj, "status", "readyReplicas"), number(&obj, "spec", "replicas"); ready != n || round != n {
					return fmt.Errorf("%d of %d are ready in %s", ready, round, c)
				}
				running++
			}
		}
		if running != len(clusters) {
			return fmt.Errorf("it is in %d clusters", running)
		}
		return nil
	})
	for _, c := range clusters {
		_, err := w.of(c, deployments).Get(w.t.Context(), name+"--"+c, metav1.GetOptions{})
		require.NoError(w.t, err)
	}
}
