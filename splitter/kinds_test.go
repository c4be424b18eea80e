// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// The Splitter creates the shards of a StatefulSet, DaemonSet, Job or CronJob, and computes the
// parent's status from theirs. While nothing changes, it writes nothing.
func TestKinds(t *testing.T) {
	for resource, test := range map[string]struct {
		kind     splitter.Kind
		group    string
		manifest string
		report   string // the status that each shard gets
		folded   string // part of the parent's status
		shards   int
	}{
		"statefulsets": {splitter.StatefulSets(), "apps",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {replicas: 5, serviceName: x, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}}`,
			`{"replicas":2,"readyReplicas":1,"availableReplicas":1,"observedGeneration":1}`, `{"replicas":4,"readyReplicas":2,"observedGeneration":1}`, 2},
		"daemonsets": {splitter.DaemonSets(), "apps",
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}}`,
			`{"numberReady":2,"desiredNumberScheduled":3,"currentNumberScheduled":3,"numberMisscheduled":0,"observedGeneration":1}`, `{"numberReady":4,"observedGeneration":1}`, 2},
		"jobs": {splitter.Jobs(), "batch",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: 4, completions: 8, template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}}`,
			`{"active":2,"succeeded":1}`, `{"active":4,"succeeded":2}`, 2},
		"cronjobs": {splitter.CronJobs(), "batch",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}}}}`,
			`{"lastScheduleTime":"2026-01-01T00:00:00Z"}`, `{"lastScheduleTime":"2026-01-01T00:00:00Z"}`, 1},
	} {
		t.Run(resource, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				gvr := schema.GroupVersionResource{Group: test.group, Version: "v1", Resource: resource}
				w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.Deployments(), test.kind}}, cluster("a", ""), cluster("b", ""))
				w.create(gvr, test.manifest)
				w.rest()
				require.Len(t, w.list(gvr), 1+test.shards)
				for _, obj := range w.list(gvr) {
					if obj.GetName() == "x" {
						continue
					}
					require.Contains(t, []string{"x--a", "x--b"}, obj.GetName())
					_, err := w.of(gvr).Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(`{"status":`+test.report+`}`), metav1.PatchOptions{FieldManager: "syncer"}, "status")
					require.NoError(t, err)
				}
				w.rest()
				var want map[string]any
				require.NoError(t, json.Unmarshal([]byte(test.folded), &want))
				status, _, _ := unstructured.NestedMap(w.get(gvr, "x").Object, "status")
				for field, v := range want {
					if n, ok := v.(float64); ok {
						v = int64(n)
					}
					require.Equal(t, v, status[field], field)
				}
				w.Reset()
				time.Sleep(time.Hour)
				require.Empty(t, w.writes(), "at rest")
				require.NoError(t, w.of(gvr).Delete(t.Context(), "x", metav1.DeleteOptions{}))
				w.rest()
				require.Empty(t, w.list(gvr))
			})
		})
	}
}

// A SyncTarget becomes a Cluster. Ready is Unknown once the heartbeat has not changed for a minute.
func TestSyncTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{})
		crd, err := config.CRD("synctargets.workload.kcp.io")
		require.NoError(t, err)
		require.NoError(t, w.AddCRD(crd))
		targets := syncerv1alpha1.GroupVersion.WithResource("synctargets")
		seen := make(chan []splitter.Cluster, 100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for list := range splitter.SyncTargets(w.api).Watch(ctx) {
				seen <- list
			}
		}()
		defer func() { cancel(); <-done }()
		next := func() (last []splitter.Cluster) {
			w.rest()
			for len(seen) > 0 {
				last = <-seen
			}
			return last
		}
		require.Empty(t, next())
		client := w.api.Dynamic().Resource(targets)
		_, err = client.Create(t.Context(), parse(t, `{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: a, labels: {zone: z}}, spec: {unschedulable: true, evictAfter: "2026-01-01T00:00:00Z",
			taints: [{key: gpu, value: a100, effect: NoSchedule}, {key: repair, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]}}`), metav1.CreateOptions{})
		require.NoError(t, err)
		got := next()
		require.Len(t, got, 1)
		require.Equal(t, splitter.Cluster{Name: "a", Labels: map[string]string{"zone": "z"}, Ready: metav1.ConditionUnknown, Unschedulable: true,
			EvictAfter: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Taints: []syncerv1alpha1.Taint{
				{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule},
				{Key: "repair", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}},
			}}, got[0])
		_, err = client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"taints":[{"key":"gpu","value":"other","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.Equal(t, []syncerv1alpha1.Taint{{Key: "gpu", Value: "other", Effect: corev1.TaintEffectNoSchedule}}, next()[0].Taints)
		beat := func(at string) {
			_, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"lastSyncerHeartbeatTime":"`+at+`","conditions":[
				{"type":"Ready","status":"True","reason":"Syncing","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
			require.NoError(t, err)
		}
		beat("2026-01-01T00:00:00Z")
		require.Equal(t, metav1.ConditionTrue, next()[0].Ready)
		time.Sleep(time.Minute)
		require.Equal(t, metav1.ConditionUnknown, next()[0].Ready, "its heart stands still")
		beat("2020-01-01T00:00:00Z") // the value of the time does not matter
		require.Equal(t, metav1.ConditionTrue, next()[0].Ready)
		require.NoError(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		require.Empty(t, next())
	})
}

// Plan takes the existing shards into account. It fails for a type that no Kind divides, and while
// the clusters are not known. It writes nothing.
func TestPlan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", "2"), cluster("b", "3"))
		synctest.Wait()
		w.Reset()
		plan, err := w.split.Plan(t.Context(), parse(t, deployment("web", 15)))
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"a": 6, "b": 9}, result(plan))
		require.Empty(t, w.writes())
		w.create(deployments, deployment("web", 15))
		w.rest()
		parent := w.get(deployments, "web")
		require.NoError(t, unstructured.SetNestedField(parent.Object, int64(20), "spec", "replicas"))
		w.clusters.Set(cluster("a", "2"), cluster("b", "3"), cluster("c", ""))
		plan, err = w.split.Plan(t.Context(), parent)
		require.NoError(t, err)
		require.Equal(t, int64(20), plan.Replicas("a")+plan.Replicas("b")+plan.Replicas("c"))
		require.GreaterOrEqual(t, plan.Replicas("a"), int64(6))
		_, err = w.split.Plan(t.Context(), parse(t, `{apiVersion: v1, kind: ConfigMap}`))
		require.ErrorContains(t, err, "no kind in Options.Kinds divides")

		idle, err := splitter.New(w.api, splitter.StaticClusters("a"), splitter.Options{})
		require.NoError(t, err)
		_, err = idle.Plan(t.Context(), parent)
		require.ErrorContains(t, err, "not known yet")
	})
}

func TestNewRefuses(t *testing.T) {
	_, err := splitter.New(nil, splitter.StaticClusters(), splitter.Options{})
	require.ErrorContains(t, err, "is nil")
	s := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(s.Close)
	w := newAPI(t, s)
	_, err = splitter.New(w, splitter.StaticClusters(), splitter.Options{Kinds: []splitter.Kind{splitter.Jobs(), splitter.Jobs()}})
	require.ErrorContains(t, err, "jobs.batch twice")
}
