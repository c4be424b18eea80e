// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

const pod = `{metadata: {labels: {app: %[1]s}}, spec: {%[2]s containers: [{name: c, image: "registry.example.com/app:1", resources: {requests: {cpu: 10m}}}]}}`

// budget is how many of a Deployment's fifteen replicas must be available. It follows from the
// maxUnavailable of the Deployment.
const budget = 13

func deployment(name string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, minReadySeconds: 1,
		strategy: {rollingUpdate: {maxUnavailable: 2, maxSurge: 2}}, selector: {matchLabels: {app: %[1]s}}, template: %[3]s}}`, name, replicas, fmt.Sprintf(pod, name, ""))
}

// TestSplit runs the steps of the multi-cluster demonstration, and further steps, in one world and
// in this order.
func TestSplit(t *testing.T) {
	w := newWorld(t, false)
	for _, story := range []struct {
		name string
		tell func(*world)
	}{
		{"Deployment", (*world).deployment},
		{"kinds", (*world).kinds},
		{"unscheduled", (*world).unscheduled},
		{"restart", (*world).restart},
		{"lost and back", (*world).lost},
		{"join", (*world).join},
		{"drain", (*world).drain},
		{"every cluster", (*world).everyCluster},
		{"rollout", (*world).rollout},
		{"evictions", (*world).evictions},
		{"autoscaler", (*world).autoscaler},
		{"kills", (*world).kills},
		{"end", (*world).end},
		{"demo", (*world).demo},
	} {
		if !t.Run(story.name, func(t *testing.T) { story.tell(w.in(t)) }) {
			return // later steps need the earlier ones
		}
	}
}

func (w *world) deployment() {
	w.create(deployments, deployment("web", 15))
	w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})
	w.eventually(deployments, "web", "is well", func(_ context.Context, web *unstructured.Unstructured) error {
		for kind, want := range map[string]string{"Available": "True MinimumReplicasAvailable", "Progressing": "True NewReplicaSetAvailable", "Placed": "True Placed"} {
			if got := conditionOf(web, kind); got != want {
				return fmt.Errorf("%s is %s", kind, got)
			}
		}
		return nil
	})

	w.patch(deployments, "web", `{"spec":{"replicas":21}}`, "scale")
	w.divided(deployments, "web", map[string]int{"cluster-1": 8, "cluster-2": 13})
	w.patch(deployments, "web", `{"spec":{"replicas":10}}`, "scale")
	w.divided(deployments, "web", map[string]int{"cluster-1": 4, "cluster-2": 6})
	w.patch(deployments, "web", `{"spec":{"replicas":15}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})

	fewest := w.least("web", clusterNames[:2], func() {
		w.patch(deployments, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"registry.example.com/app:2","resources":{"requests":{"cpu":"10m"}}}]}}}}`)
		w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})
	})
	require.GreaterOrEqual(w.t, fewest, budget)
	for _, c := range clusterNames[:2] {
		obj, err := w.of(c, deployments).Get(w.t.Context(), "web--"+c, metav1.GetOptions{})
		require.NoError(w.t, err)
		containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		require.Equal(w.t, "registry.example.com/app:2", containers[0].(map[string]any)["image"])
	}

	// Manual changes are reverted.
	w.replaced("upstream", deployments, "web--cluster-1")
	w.replaced("cluster-2", deployments, "web--cluster-2")
	w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})
	w.patch(deployments, "web--cluster-1", `{"spec":{"replicas":1}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})

	w.delete("upstream", deployments, "web")
	w.gone(deployments, "web", clusterNames...)
}

// kinds tests the other kinds of workloads, each of which is divided in its own way.
func (w *world) kinds() {
	w.create(cronJobs, fmt.Sprintf("{apiVersion: batch/v1, kind: CronJob, metadata: {name: tick}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: %s}}}}",
		fmt.Sprintf(pod, "tick", "restartPolicy: Never,")))

	w.create(statefulSets, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 5, serviceName: db, selector: {matchLabels: {app: db}}, template: %s}}",
		fmt.Sprintf(pod, "db", "")))
	w.divided(statefulSets, "db", map[string]int{"cluster-1": 2, "cluster-2": 3})
	w.patch(statefulSets, "db", `{"spec":{"replicas":10}}`)
	w.divided(statefulSets, "db", map[string]int{"cluster-1": 4, "cluster-2": 6})

	w.create(daemonSets, fmt.Sprintf("{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: %s}}",
		fmt.Sprintf(pod, "agent", "")))
	w.eventually(daemonSets, "agent", "runs on the node of each cluster", func(_ context.Context, agent *unstructured.Unstructured) error {
		for _, field := range []string{"desiredNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled"} {
			if n := number(agent, "status", field); n != 2 {
				return fmt.Errorf("%s is %d", field, n)
			}
		}
		return nil
	})

	w.create(jobs, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: batch}, spec: {parallelism: 5, completions: 20, template: %s}}",
		fmt.Sprintf(pod, "batch", "restartPolicy: Never,")))
	w.eventually(jobs, "batch", "is complete", func(_ context.Context, batch *unstructured.Unstructured) error {
		if n := number(batch, "status", "succeeded"); n != 20 {
			return fmt.Errorf("%d have succeeded: %v", n, batch.Object["status"])
		}
		if c := conditionOf(batch, "Complete"); c != "True CompletionsReached" {
			return fmt.Errorf("Complete is %s", c)
		}
		return nil
	})
	list, err := w.of("upstream", jobs).List(w.t.Context(), metav1.ListOptions{LabelSelector: "splitter.atoll.dev/parent"})
	require.NoError(w.t, err)
	require.Len(w.t, list.Items, 2)

	w.ticks()
	w.delete("upstream", cronJobs, "tick") // its runs would be writes at rest
	w.gone(cronJobs, "tick", clusterNames...)
}

// ticks waits until a CronJob is in one cluster and the upstream has its status. To avoid waiting
// for the next minute, ticks makes the controller run a Job that seems to have been missed.
func (w *world) ticks() {
	var at []string
	planetest.Eventually(w.t, long, "tick is in one cluster", func(ctx context.Context) error {
		at = nil
		for _, c := range clusterNames {
			list, err := w.of(c, cronJobs).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, obj := range list.Items {
				at = append(at, c, obj.GetName())
			}
		}
		if len(at) != 2 {
			return fmt.Errorf("it is in %v", at)
		}
		return nil
	})
	missed := time.Now().Add(-5 * time.Minute).UTC().Truncate(time.Second)
	patch := fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, missed.Format(time.RFC3339))
	_, err := w.of(at[0], cronJobs).Patch(w.t.Context(), at[1], types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	require.NoError(w.t, err)
	w.eventually(cronJobs, "tick", "has run", func(_ context.Context, tick *unstructured.Unstructured) error {
		text, _, _ := unstructured.NestedString(tick.Object, "status", "lastScheduleTime")
		last, err := time.Parse(time.RFC3339, text)
		if err == nil && !last.After(missed) {
			err = fmt.Errorf("lastScheduleTime is %s", text)
		}
		return err
	})
}

// restart kills the manager and requires that the next manager writes nothing. With the default
// heartbeat, the lease of a SyncTarget outlasts the restart. If the manager were away for longer
// than the lease, the clusters would not be Ready for a moment.
func (w *world) restart() {
	w.create(deployments, deployment("web", 15))
	w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})
	w.rests(clusterNames[:2]...)
	restart := func() map[string]*unstructured.Unstructured {
		w.manager.kill(w.t)
		w.manager.start(w.t)
		return w.rests(clusterNames[:2]...)
	}
	w.manager.heartbeat = 0 // the default
	before := restart()
	require.Empty(w.t, cmp.Diff(before, restart()))
	w.manager.heartbeat = heartbeat
	restart()
}

// lost stops the second cluster for a while.
func (w *world) lost() {
	require.NoError(w.t, w.planes["cluster-2"].Kill(w.t.Context()))
	planetest.Eventually(w.t, long, "replicas of the lost cluster are in the other", func(ctx context.Context) error {
		n, err := w.available(ctx, "web", clusterNames[:1])
		if err == nil && n != 15 {
			err = fmt.Errorf("%d are available", n)
		}
		return err
	})
	w.eventually(deployments, "web", "is whole", func(_ context.Context, web *unstructured.Unstructured) error {
		if n := number(web, "status", "availableReplicas"); n != 15 {
			return fmt.Errorf("availableReplicas is %d", n)
		}
		return nil
	})
	require.NoError(w.t, w.planes["cluster-2"].Restart(w.t.Context()))
	fewest := w.least("web", clusterNames[:2], func() {
		w.divided(deployments, "web", map[string]int{"cluster-1": 6, "cluster-2": 9})
	})
	require.GreaterOrEqual(w.t, fewest, budget)
	w.divided(statefulSets, "db", map[string]int{"cluster-1": 4, "cluster-2": 6})
}

func (w *world) join() {
	fewest := w.least("web", clusterNames, func() {
		w.register("cluster-3", 4)
		w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	})
	require.GreaterOrEqual(w.t, fewest, budget)
	w.eventually(daemonSets, "agent", "runs in the new cluster too", func(_ context.Context, agent *unstructured.Unstructured) error {
		if n := number(agent, "status", "numberAvailable"); n != 3 {
			return fmt.Errorf("numberAvailable is %d", n)
		}
		return nil
	})
}

func (w *world) drain() {
	fewest := w.least("web", clusterNames, func() {
		w.patchTarget("cluster-1", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`)
		w.divided(deployments, "web", map[string]int{"cluster-2": 6, "cluster-3": 9})
	})
	require.GreaterOrEqual(w.t, fewest, budget)
	w.patchTarget("cluster-1", `{"spec":{"evictAfter":null}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
}

// kills kills the process at random moments, ATOLL_SPLIT_KILLS times, during changes. The available
// replicas must stay within the budget.
func (w *world) kills() {
	drained := false
	fewest := w.least("web", clusterNames, func() {
		for i := range ctltest.Count(w.t, "ATOLL_SPLIT_KILLS", 5) {
			switch i % 4 {
			case 0:
				drained = !drained
				w.patchTarget("cluster-1", map[bool]string{true: `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`, false: `{"spec":{"evictAfter":null}}`}[drained])
			case 1:
				w.patch(deployments, "web", fmt.Sprintf(`{"metadata":{"annotations":{"round":"%d"}},"spec":{"replicas":%d}}`, i, 15+rand.IntN(10)))
			case 2:
				w.patchTarget("cluster-3", fmt.Sprintf(`{"metadata":{"labels":{"splitter.atoll.dev/weight":"%d"}}}`, 1+rand.IntN(8)))
			case 3:
				w.patch(statefulSets, "db", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+rand.IntN(12)))
			}
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond) // a random moment
			w.manager.kill(w.t)
			w.manager.start(w.t)
		}
	})
	require.GreaterOrEqual(w.t, fewest, budget)
	w.patchTarget("cluster-1", `{"spec":{"evictAfter":null}}`)
	w.patchTarget("cluster-3", `{"metadata":{"labels":{"splitter.atoll.dev/weight":"4"}}}`)
	w.patch(deployments, "web", `{"spec":{"replicas":15}}`)
	w.patch(statefulSets, "db", `{"spec":{"replicas":5}}`)
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	w.eventually(statefulSets, "db", "is whole", func(_ context.Context, db *unstructured.Unstructured) error {
		if n := number(db, "status", "availableReplicas"); n != 5 {
			return fmt.Errorf("availableReplicas is %d", n)
		}
		return nil
	})
	w.rests(clusterNames...)
}

// end checks the results of earlier steps, deletes all objects, and requires that no object is
// left.
func (w *world) end() {
	// The Job had completed before clusters were lost, joined and drained, and did not run again.
	batch, err := w.of("upstream", jobs).Get(w.t.Context(), "batch", metav1.GetOptions{})
	require.NoError(w.t, err)
	require.Equal(w.t, 20, number(batch, "status", "succeeded"))
	list, err := w.of("upstream", jobs).List(w.t.Context(), metav1.ListOptions{LabelSelector: "splitter.atoll.dev/parent"})
	require.NoError(w.t, err)
	var at []string
	for _, shard := range list.Items {
		at = append(at, shard.GetLabels()["workloads.kcp.io/cluster"])
	}
	require.ElementsMatch(w.t, clusterNames[:2], at)
	// No write was rejected as invalid.
	log, err := os.ReadFile(w.manager.log.Name())
	require.NoError(w.t, err)
	require.NotContains(w.t, string(log), "is invalid")

	w.delete("upstream", deployments, "web")
	w.delete("upstream", statefulSets, "db")
	w.delete("upstream", daemonSets, "agent")
	w.delete("upstream", jobs, "batch")
	for _, gvr := range kinds {
		planetest.Eventually(w.t, long, "no "+gvr.Resource+" are left", func(ctx context.Context) error {
			for side, client := range w.clients {
				list, err := client.Resource(gvr).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
				if err != nil {
					return err
				}
				var left []string
				for _, obj := range list.Items {
					left = append(left, obj.GetName())
				}
				if left != nil {
					return fmt.Errorf("%s has %v", side, left)
				}
			}
			return nil
		})
	}
	for _, name := range clusterNames {
		require.NoError(w.t, w.clients["upstream"].Resource(syncTargets).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
	}
	planetest.Eventually(w.t, long, "SyncTargets are gone", func(ctx context.Context) error {
		list, err := w.clients["upstream"].Resource(syncTargets).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
}
