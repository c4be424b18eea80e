// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const taintManifests = `
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: east}
---
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: west}
---
apiVersion: splitter.atoll.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: web, namespace: %[1]s}
spec: {tolerations: [{key: repair, operator: Exists, effect: NoExecute, tolerationSeconds: 8}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 4
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

var syncTargets = syncerv1alpha1.GroupVersion.WithResource("synctargets")

// target patches a SyncTarget.
func (w *world) target(name, patch string, subresources ...string) error {
	_, err := w.api.Dynamic().Resource(syncTargets).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	return err
}

// divided waits until the shards of the Deployment have the given numbers of replicas. Meanwhile each shard reports all
// its replicas as available, one more at a time. It fails if the Deployment ever has fewer available replicas than least.
func (w *world) divided(want map[string]int64, least int64) {
	w.t.Helper()
	planetest.Eventually(w.t, long, fmt.Sprint(want), func(ctx context.Context) error {
		got, available := map[string]int64{}, int64(0)
		var behind []string
		for _, cluster := range []string{"east", "west"} {
			shard, err := w.get(ctx, deployments, "web--"+cluster)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			n, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas")
			works, _, _ := unstructured.NestedInt64(shard.Object, "status", "availableReplicas")
			got[cluster], available = n, available+min(n, works)
			if observed, _, _ := unstructured.NestedInt64(shard.Object, "status", "observedGeneration"); works != n || observed != shard.GetGeneration() {
				behind = append(behind, cluster)
				report := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"updatedReplicas":%[2]d,"readyReplicas":%d,"availableReplicas":%[3]d}}`, shard.GetGeneration(), n, min(n, works+1))
				_, err := w.api.Dynamic().Resource(deployments).Namespace(w.namespace).Patch(ctx, shard.GetName(), types.MergePatchType, []byte(report), metav1.PatchOptions{}, "status")
				if err != nil && !apierrors.IsNotFound(err) { // the Splitter may have just deleted the shard
					return err
				}
			}
		}
		require.GreaterOrEqual(w.t, available, least, "of %v", got)
		if behind != nil || !maps.Equal(want, got) {
			return fmt.Errorf("%v, and %v report", got, behind)
		}
		return nil
	})
}

// A SyncTarget gets a taint NoSchedule: its replicas stay, and new ones go to the other cluster. Then it gets a taint
// NoExecute, which the policy tolerates for 8 seconds: its replicas stay for this time, and then move. The available
// replicas are never fewer than the desired ones.
func TestTaintedSyncTarget(t *testing.T) {
	plane := planetest.New(t, plane.Options{Name: "upstream"}) // the SyncTargets of other tests would be clusters, too
	api, err := region.APIFor(plane.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{v1alpha1.GroupName, syncerv1alpha1.GroupVersion.Group}})
	require.NoError(t, err)
	w := &world{t: t, api: api, namespace: planetest.Namespace(t, plane)}
	planetest.Apply(t, plane, fmt.Sprintf(taintManifests, w.namespace))
	for _, name := range []string{"east", "west"} {
		require.NoError(t, w.target(name, `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Syncing","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status"))
	}
	c, err := placement.New(api, splitter.SyncTargets(api), placement.Options{})
	require.NoError(t, err)
	w.start(c.Start)
	s, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{Place: placement.Place})
	require.NoError(t, err)
	w.start(s.Start)
	w.divided(map[string]int64{"east": 2, "west": 2}, 0)

	require.ErrorContains(t, w.target("east", `{"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"},{"key":"gpu","value":"x","effect":"NoSchedule"}]}}`), "Duplicate value")
	require.NoError(t, w.target("east", `{"spec":{"taints":[{"key":"gpu","effect":"NoSchedule"}]}}`))
	w.rests()
	w.patch(deployments, "web", map[string]any{"spec": map[string]any{"replicas": 6}})
	w.divided(map[string]int64{"east": 2, "west": 4}, 4)

	before := w.rests()
	added := time.Now()
	require.NoError(t, w.target("east", `{"spec":{"taints":[{"key":"repair","effect":"NoExecute"}]}}`))
	planetest.Eventually(t, long, "the Deployment leaves east", func(ctx context.Context) error {
		web, err := w.get(ctx, deployments, "web")
		if err == nil && web.GetAnnotations()[v1alpha1.LeavingAnnotation] != "east" {
			err = errors.New("it stays")
		}
		return err
	})
	require.GreaterOrEqual(t, time.Since(added), 8*time.Second)
	versions, err := w.versions(t.Context())
	require.NoError(t, err)
	require.Equal(t, before["deployments/web--east"], versions["deployments/web--east"], "replicas leave only when others are available")
	w.divided(map[string]int64{"west": 6}, 6)
}
