// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
	"github.com/atoll-dev/atoll/syncer"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const large = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  replicas: 5
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: "1", example.com/gpu: "1"}, limits: {example.com/gpu: "1"}}}]}
`

// Two Deployments together request more than the nodes of two clusters have. Syncers report the nodes. At no time the
// requests of the shards of a cluster exceed its nodes. The room of a deleted Deployment goes to the other one.
func TestRoom(t *testing.T) {
	// The SyncTargets of other tests would be clusters, too.
	planes := planetest.NewAll(t, plane.Options{Name: "upstream"}, plane.Options{Name: "room-a"}, plane.Options{Name: "room-b"})
	up, err := region.APIFor(planes[0].Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), up, config.InstallOptions{Groups: []string{v1alpha1.GroupName, syncerv1alpha1.GroupVersion.Group}})
	require.NoError(t, err)
	w := &world{t: t, api: up, namespace: planetest.Namespace(t, planes...)}
	downs := map[string]dynamic.Interface{}
	has := map[string]int64{"room-a": 4, "room-b": 3} // gpus; there is more cpu
	for i, name := range []string{"room-a", "room-b"} {
		down, err := region.APIFor(planes[i+1].Config())
		require.NoError(t, err)
		downs[name] = down.Dynamic()
		w.node(down.Dynamic(), name, has[name])
		planetest.Apply(t, planes[0], fmt.Sprintf("apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: %s}\nspec: {}\n", name))
		s, err := syncer.New(up, down, syncer.Options{Target: name, Heartbeat: time.Second, Capacity: time.Second, Types: func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() }})
		require.NoError(t, err)
		w.start(s.Start)
	}
	targets := up.Dynamic().Resource(syncerv1alpha1.GroupVersion.WithResource("synctargets"))
	planetest.Eventually(t, long, "capacities are reported", func(ctx context.Context) error {
		for name := range has {
			target, err := targets.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if capacity, _, _ := unstructured.NestedStringMap(target.Object, "status", "capacity"); capacity["example.com/gpu"] == "" || workload.Condition(target, "Ready")["status"] != "True" {
				return fmt.Errorf("%s: %v", name, target.Object["status"])
			}
		}
		return nil
	})
	s, err := splitter.New(up, splitter.SyncTargets(up), splitter.Options{Finalize: true})
	require.NoError(t, err)
	w.start(s.Start)

	sampled := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { sampled <- w.sampleRoom(ctx, has) }()
	w.create("web", "api")
	w.used(downs, has)
	planetest.Eventually(t, long, "the Deployments have the conditions", func(ctx context.Context) error {
		var all []string
		for _, name := range []string{"web", "api"} {
			obj, err := w.get(ctx, deployments, name)
			if err != nil {
				return err
			}
			c := workload.Condition(obj, splitter.ConditionPlaced)
			all = append(all, fmt.Sprintf("%v %v", c["status"], c["message"]))
		}
		for i, text := range []string{"True all replicas have a place", "False 3 replicas find no place: room-a Capacity (example.com/gpu), room-b Capacity (example.com/gpu)"} {
			if all[0] != text && all[1] != text {
				return fmt.Errorf("condition %d is missing: %q", i, all)
			}
		}
		return nil
	})
	require.NoError(t, up.Dynamic().Resource(deployments).Namespace(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	w.create("late")
	w.used(downs, has) // api and late have the room of web
	require.NoError(t, up.Dynamic().Resource(deployments).Namespace(w.namespace).Delete(t.Context(), "api", metav1.DeleteOptions{}))
	// No controller reports replicas as available, so none of late moves: its five replicas can be divided in several ways.
	planetest.Eventually(t, long, "late alone uses five", func(ctx context.Context) error {
		if _, err := w.get(ctx, deployments, "api"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("api: %w", cmp.Or(err, errors.New("it exists")))
		}
		is, err := w.requests(ctx, downs)
		if err == nil && is["room-a"]+is["room-b"] != 5 {
			err = fmt.Errorf("%v are used", is)
		}
		return err
	})
	cancel()
	require.NoError(t, <-sampled)
}

func (w *world) create(names ...string) {
	w.t.Helper()
	for _, name := range names {
		obj := &unstructured.Unstructured{}
		decode(w.t, fmt.Sprintf(large, name, w.namespace), obj)
		_, err := w.api.Dynamic().Resource(deployments).Namespace(w.namespace).Create(w.t.Context(), obj, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// used waits until the clusters have exactly the given requests.
func (w *world) used(downs map[string]dynamic.Interface, want map[string]int64) {
	w.t.Helper()
	planetest.Eventually(w.t, long, fmt.Sprint(want, " are used"), func(ctx context.Context) error {
		is, err := w.requests(ctx, downs)
		if err == nil && !maps.Equal(is, want) {
			err = fmt.Errorf("%v are used", is)
		}
		return err
	})
}

// requests returns the sum of the desired replicas in each cluster. Each requests one of the scarce resource.
func (w *world) requests(ctx context.Context, downs map[string]dynamic.Interface) (map[string]int64, error) {
	sum := map[string]int64{}
	for name, down := range downs {
		list, err := down.Resource(deployments).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			n, _, _ := unstructured.NestedInt64(list.Items[i].Object, "spec", "replicas")
			sum[name] += n
		}
	}
	return sum, nil
}

// assigned returns the sum of the desired replicas of the shards of each cluster, at one moment. Requests in the clusters
// may be above it for a moment: while one shard shrinks and another grows, the syncer can write the second one first.
func (w *world) assigned(ctx context.Context) (map[string]int64, error) {
	list, err := w.api.Dynamic().Resource(deployments).Namespace(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: syncerv1alpha1.ClusterLabel})
	if err != nil {
		return nil, err
	}
	sum := map[string]int64{}
	for i := range list.Items {
		n, _, _ := unstructured.NestedInt64(list.Items[i].Object, "spec", "replicas")
		sum[list.Items[i].GetLabels()[syncerv1alpha1.ClusterLabel]] += n
	}
	return sum, nil
}

// sampleRoom compares the assigned requests with the capacities until ctx ends.
func (w *world) sampleRoom(ctx context.Context, most map[string]int64) error {
	for samples := 0; ; samples++ {
		is, err := w.assigned(ctx)
		if ctx.Err() != nil {
			if samples < 10 {
				return fmt.Errorf("only %d samples", samples)
			}
			return nil
		}
		if err != nil {
			return err
		}
		for name, n := range is {
			if n > most[name] {
				return fmt.Errorf("%s has %d of %d", name, n, most[name])
			}
		}
	}
}

// node creates a Node object, which is ready. No kubelet runs, so no other client writes it.
func (w *world) node(down dynamic.Interface, name string, gpus int64) {
	w.t.Helper()
	client := down.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	obj := &unstructured.Unstructured{}
	decode(w.t, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}}`, name), obj)
	made, err := client.Create(w.t.Context(), obj, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{}) })
	made.Object["status"] = map[string]any{
		"allocatable": map[string]any{"cpu": "8", "memory": "8Gi", "pods": "110", "example.com/gpu": fmt.Sprint(gpus)},
		"conditions":  []any{map[string]any{"type": "Ready", "status": "True"}},
	}
	_, err = client.UpdateStatus(w.t.Context(), made, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

func decode(t *testing.T, manifest string, into *unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &into.Object))
}
