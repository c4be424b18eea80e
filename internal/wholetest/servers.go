// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// workers is the number of concurrent writers: of the parents, of each syncer, of the splitter, and
// of the bare loop.
const workers = 16

// clusters lists the clusters of the measurements. They have equal weights.
var clusters = []string{"cluster-1", "cluster-2"}

// Servers are an upstream and two clusters, without controllers.
type Servers struct {
	Up       region.API
	Clusters [2]region.API
}

// Cost is a wall time and the CPU time that this process used meanwhile.
type Cost struct{ Wall, CPU time.Duration }

func measure(tb testing.TB, do func()) Cost {
	tb.Helper()
	used := func() time.Duration {
		cpu, err := processCPU()
		require.NoError(tb, err)
		return cpu
	}
	begun, before := time.Now(), used()
	do()
	return Cost{time.Since(begun), used() - before}
}

// Divided starts a splitter and a syncer for each cluster, creates n Deployments, and returns the
// cost from the first create until all shards are downstream. Then it waits until writes stop, and
// stops the loops.
func (s Servers) Divided(tb testing.TB, namespace string, n int) Cost {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	split, err := splitter.New(s.Up, splitter.StaticClusters(clusters...), splitter.Options{Workers: workers, Finalize: true})
	require.NoError(tb, err)
	running.Go(func() { _ = split.Start(ctx) })
	var syncers []*syncer.Syncer
	for i, name := range clusters {
		one, err := syncer.New(s.Up, s.Clusters[i], syncer.Options{
			Target: name, Workers: workers, Types: func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() },
		})
		require.NoError(tb, err)
		running.Go(func() { _ = one.Start(ctx) })
		syncers = append(syncers, one)
	}
	// there returns the number of Deployments in the cluster that has the fewest, or -1 if a number
	// is unknown.
	there := func() int {
		least := -1
		for _, one := range syncers {
			down := downstream(one.Status())
			if least < 0 || down < least {
				least = down
			}
			if least < 0 {
				break
			}
		}
		return least
	}
	await(tb, "syncers", func() bool { return there() >= 0 })
	before := there()
	cost := measure(tb, func() {
		each(tb, n, func(i int) error { return create(ctx, s.Up, parent(namespace, i)) })
		await(tb, "shards downstream", func() bool { return there() >= before+n })
	})
	s.rest(tb, namespace)
	return cost
}

// downstream returns the number of Deployments downstream, or -1 if the number is unknown.
func downstream(status syncer.Status) int {
	for _, t := range status.Types {
		if t.Resource == deployments && t.Reason == "" && t.Err == nil {
			return t.Downstream
		}
	}
	return -1
}

// await polls often, because the wait is measured.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for begun := time.Now(); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Minute {
			tb.Fatalf("still waiting for %s", what)
		}
	}
}

// rest waits until writes upstream stop.
func (s Servers) rest(tb testing.TB, namespace string) {
	tb.Helper()
	version := func() string {
		list, err := s.Up.Dynamic().Resource(deployments).Namespace(namespace).List(tb.Context(), metav1.ListOptions{})
		require.NoError(tb, err)
		latest := ""
		for _, obj := range list.Items {
			if v := obj.GetResourceVersion(); len(v) > len(latest) || len(v) == len(latest) && v > latest {
				latest = v
			}
		}
		return latest
	}
	for before, now := "", version(); before != now; before, now = now, version() {
		time.Sleep(time.Second)
	}
}

// each calls do n times, at most workers calls at once.
func each(tb testing.TB, n int, do func(i int) error) {
	tb.Helper()
	work, errs := make(chan int), make(chan error, n)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range work {
				if err := do(i); err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	running.Wait()
	close(errs)
	for err := range errs {
		require.NoError(tb, err)
	}
}

func create(ctx context.Context, on region.API, obj *unstructured.Unstructured) error {
	_, err := on.Dynamic().Resource(deployments).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{FieldManager: "bare"})
	return err
}

func apply(ctx context.Context, on region.API, manager string, obj *unstructured.Unstructured, subresources ...string) error {
	_, err := on.Dynamic().Resource(deployments).Namespace(obj.GetNamespace()).Apply(ctx, obj.GetName(), obj,
		metav1.ApplyOptions{FieldManager: manager, Force: true}, subresources...)
	return err
}

// parent returns the i-th Deployment.
func parent(namespace string, i int) *unstructured.Unstructured {
	labels := map[string]any{"app": fmt.Sprintf("d-%05d", i)}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": labels["app"], "namespace": namespace, "labels": labels},
		"spec": map[string]any{
			"replicas": int64(15), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "c", "image": "registry.example/a:1", "ports": []any{map[string]any{"containerPort": int64(80)}},
					"env": []any{map[string]any{"name": "A", "value": "b"}}, "resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}}}},
			}},
		},
	}}
}
