// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	services = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	claims   = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	slices1  = schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}
)

// TestUses has a step for each use case of transparent multi-cluster, in this order and in one world. The name of a step
// is the sentence of the proposal, shortened. docs/use-cases.md has the promises of each step and their limits.
func TestUses(t *testing.T) {
	w := newWorld(t, true)
	// While replicas are counted, a cluster that is only slow must not count as lost.
	w.manager.stop(t)
	w.manager.grace = grace
	w.manager.start(t)
	for i, name := range clusterNames[:2] {
		w.patchTarget(name, fmt.Sprintf(`{"metadata":{"labels":{"site":"site-%d"}}}`, i+1))
	}
	for _, use := range []struct {
		sentence string
		shows    func(*world)
	}{
		{"user 1: apply a workload, see it assigned to real resources, start running, and its status summarized", (*world).isApplied},
		{"user 2 and 3: move an application by changing a single attribute, without a visible disruption", (*world).isMoved},
		{"user 4: debug an application in a familiar manner regardless of cluster", (*world).isDebugged},
		{"user 5: a stateful application moves in a manner consistent with its volumes", (*world).movesWithVolumes},
		{"admin 1: decommission a cluster and see workloads moved without disruption", (*world).isDecommissioned},
		{"admin 2: capacity bounds control admission and react to growth", (*world).grows},
	} {
		if !t.Run(use.sentence, func(t *testing.T) { use.shows(w.in(t)) }) {
			return // later steps need the earlier ones
		}
	}
}

// policyFor is the policy of all workloads of the namespace. The site is the single attribute by which they move.
func policyFor(selector string) string {
	return fmt.Sprintf(`{"spec":{"clusterSelector":%s}}`, selector)
}

func (w *world) isApplied() {
	w.create(policies, `{apiVersion: splitter.atoll.dev/v1alpha1, kind: PlacementPolicy, metadata: {name: all}, spec: {dependents: true, clusterSelector: {matchLabels: {site: site-1}}}}`)
	w.create(services, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
	w.create(deployments, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 6, minReadySeconds: 1,
		strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}, selector: {matchLabels: {app: web}}, template: %s}}`, fmt.Sprintf(pod, "web", "")))
	w.divided(deployments, "web", map[string]int{"cluster-1": 6})
	w.endpoints(6, "cluster-1")
}

func (w *world) isMoved() {
	fewest := w.least("web", clusterNames[:2], func() {
		served, _ := w.sample("web: ready endpoints", func(ctx context.Context) (int, error) { return w.served(ctx, clusterNames[:2]) }, func() {
			w.patch(policies, "all", policyFor(`{"matchLabels":{"site":"site-2"}}`))
			w.divided(deployments, "web", map[string]int{"cluster-2": 6})
		})
		require.Positive(w.t, served, "the Service has endpoints in a cluster at any time")
	})
	require.GreaterOrEqual(w.t, fewest, 6, "maxUnavailable is 0")
	w.endpoints(6, "cluster-2")
	planetest.Eventually(w.t, long, "the Service leaves the old cluster", func(ctx context.Context) error {
		_, err := w.of("cluster-1", services).Get(ctx, "web", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there still: %w", err)
	})
}

// isDebugged follows a Deployment that does not start: from the condition in the upstream to the cluster, and there to the
// pods, by the labels that the user gave them, and to their own conditions.
func (w *world) isDebugged() {
	w.create(deployments, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: stuck}, spec: {replicas: 2, selector: {matchLabels: {app: stuck}}, template: %s}}`,
		fmt.Sprintf(pod, "stuck", "nodeSelector: {there-is: none},")))
	w.eventually(deployments, "stuck", "reports the cluster and the cause", func(_ context.Context, stuck *unstructured.Unstructured) error {
		if c := conditionOf(stuck, "Scheduled"); c != "False Unschedulable" {
			return fmt.Errorf("Scheduled is %q: %v", c, stuck.Object["status"])
		}
		return nil
	})
	shards, err := w.of("upstream", deployments).List(w.t.Context(), metav1.ListOptions{LabelSelector: "splitter.atoll.dev/parent"})
	require.NoError(w.t, err)
	for _, shard := range shards.Items {
		if shard.GetAnnotations()["splitter.atoll.dev/parent-name"] != "stuck" {
			continue
		}
		list, err := w.of(shard.GetLabels()["workloads.kcp.io/cluster"], pods).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=stuck"})
		require.NoError(w.t, err)
		require.Len(w.t, list.Items, 2)
		for i := range list.Items {
			require.Equal(w.t, "False Unschedulable", conditionOf(&list.Items[i], "PodScheduled"))
		}
	}
	w.patch(deployments, "stuck", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	w.divided(deployments, "stuck", map[string]int{"cluster-2": 2})
	w.delete("upstream", deployments, "stuck")
	w.gone(deployments, "stuck", clusterNames...)
}

// movesWithVolumes asks for a move of a StatefulSet with volumes of one cluster. The replicas stay, and the condition names
// the reason. After the annotation says that the volumes were copied, the replicas move, to the volumes that the copier
// prepared.
func (w *world) movesWithVolumes() {
	for _, c := range clusterNames[:2] {
		for i := range 2 {
			_, err := w.clients[c].Resource(volumes).Create(w.t.Context(), parsed(w.t, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: volume-%d},
				spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /volume-%d}}}`, i, i)), metav1.CreateOptions{})
			require.NoError(w.t, err)
		}
	}
	w.create(statefulSets, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}}, template: %s,
		volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`, fmt.Sprintf(pod, "db", "")))
	w.divided(statefulSets, "db", map[string]int{"cluster-2": 2})
	before := w.bound("cluster-2")

	w.patch(policies, "all", policyFor(`{"matchLabels":{"site":"site-1"}}`))
	w.divided(deployments, "web", map[string]int{"cluster-1": 6}) // it has no volumes
	w.eventually(statefulSets, "db", "stays with its volumes", func(_ context.Context, db *unstructured.Unstructured) error {
		if c := conditionOf(db, "Placed"); c != "False VolumesHeld" {
			return fmt.Errorf("Placed is %s", c)
		}
		return nil
	})
	w.divided(statefulSets, "db", map[string]int{"cluster-2": 2})
	require.Equal(w.t, before, w.bound("cluster-2"))

	// The copier: a claim with the name that the first replica will ask for, bound to the volume with the copy.
	_, err := w.of("cluster-1", claims).Create(w.t.Context(), parsed(w.t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db--cluster-1-0},
		spec: {storageClassName: "", volumeName: volume-1, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`), metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.patch(statefulSets, "db", `{"metadata":{"annotations":{"splitter.atoll.dev/leave-volumes":"cluster-2"}}}`)
	w.divided(statefulSets, "db", map[string]int{"cluster-1": 2})
	require.Equal(w.t, "volume-1", w.bound("cluster-1")["data-db--cluster-1-0"], "the replica has the copied volume")
	require.Equal(w.t, before, w.bound("cluster-2"), "the old volumes are left, not deleted")
	w.delete("upstream", statefulSets, "db")
	w.gone(statefulSets, "db", clusterNames...)
}

func (w *world) isDecommissioned() {
	w.patch(policies, "all", `{"spec":{"clusterSelector":null}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 2, "cluster-2": 4})
	fewest := w.least("web", clusterNames[:2], func() {
		w.patchTarget("cluster-1", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`)
		w.divided(deployments, "web", map[string]int{"cluster-2": 6})
	})
	require.GreaterOrEqual(w.t, fewest, 6, "maxUnavailable is 0")
	w.gone(deployments, "web--cluster-1", "cluster-1")
	require.NoError(w.t, w.clients["upstream"].Resource(syncTargets).Delete(w.t.Context(), "cluster-1", metav1.DeleteOptions{}))
	planetest.Eventually(w.t, long, "the SyncTarget is gone", func(ctx context.Context) error {
		_, err := w.clients["upstream"].Resource(syncTargets).Get(ctx, "cluster-1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there still: %w", err)
	})
}

// grows lets a workload grow beyond the bounds of its clusters. No cluster gets more than its bound, and the rest is
// reported. When a bound is raised, the rest is placed.
func (w *world) grows() {
	w.patchTarget("cluster-2", `{"spec":{"pods":10}}`)
	w.register("cluster-3", 3)
	w.patchTarget("cluster-3", `{"spec":{"pods":2}}`)
	w.patch(deployments, "web", `{"spec":{"replicas":12}}`)
	w.divided(deployments, "web", map[string]int{"cluster-2": 10, "cluster-3": 2})
	w.patch(deployments, "web", `{"spec":{"replicas":14}}`)
	w.eventually(deployments, "web", "has two replicas without a place", func(ctx context.Context, web *unstructured.Unstructured) error {
		if c := conditionOf(web, "Placed"); c != "False Unplaced" {
			return fmt.Errorf("Placed is %s", c)
		}
		return w.shardsAre(ctx, deployments, "web", map[string]int{"cluster-2": 10, "cluster-3": 2})
	})
	w.patchTarget("cluster-3", `{"spec":{"pods":50}}`)
	w.divided(deployments, "web", map[string]int{"cluster-2": 7, "cluster-3": 7})
}

// served returns the number of ready endpoints of the Service web in the clusters.
func (w *world) served(ctx context.Context, clusters []string) (sum int, err error) {
	for _, c := range clusters {
		list, err := w.of(c, slices1).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil {
			return 0, err
		}
		for _, slice := range list.Items {
			endpoints, _, _ := unstructured.NestedSlice(slice.Object, "endpoints")
			for _, e := range endpoints {
				if is, _, _ := unstructured.NestedBool(e.(map[string]any), "conditions", "ready"); is {
					sum++
				}
			}
		}
	}
	return sum, nil
}

// endpoints waits until the Service web has n ready endpoints in the cluster.
func (w *world) endpoints(n int, cluster string) {
	w.t.Helper()
	planetest.Eventually(w.t, long, "endpoints in "+cluster, func(ctx context.Context) error {
		is, err := w.served(ctx, []string{cluster})
		if err == nil && is != n {
			err = fmt.Errorf("%d of %d are ready", is, n)
		}
		return err
	})
}

// bound returns the volumes of the claims in a cluster, by the name of the claim.
func (w *world) bound(cluster string) map[string]string {
	w.t.Helper()
	list, err := w.of(cluster, claims).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	all := map[string]string{}
	for _, claim := range list.Items {
		all[claim.GetName()], _, _ = unstructured.NestedString(claim.Object, "spec", "volumeName")
	}
	require.NotEmpty(w.t, all)
	return all
}

func parsed(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	return obj
}
