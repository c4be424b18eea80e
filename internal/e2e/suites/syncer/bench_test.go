// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/syncer"
)

// concurrency is how many workers write, ours and those of the baseline.
const concurrency = 16

// cost is what something took in this process: the planes are others.
type cost struct{ wall, cpu time.Duration }

func measure(t *testing.T, do func()) cost {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun, before := time.Now(), used()
	do()
	return cost{time.Since(begun), used() - before}
}

func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCost compares a syncer with bare loops that do as little as can be done for the same objects, in one run: a loop that
// creates them downstream, one that also writes each of them once upstream, as the finalizer does, and an informer that
// holds one side. ATOLL_OBJECTS is how many there are. It fails if a restart writes, not because of a time.
func TestCost(t *testing.T) {
	n := ctltest.Count(t, "ATOLL_OBJECTS", 300)
	planes := planetest.Shared(t, 2)
	ours, bare, both := planetest.Namespace(t, planes...), planetest.Namespace(t, planes...), planetest.Namespace(t, planes...)
	up, down := newSide(t, planes[0], ours), newSide(t, planes[1], ours)

	wish := func(namespace string, i int) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": fmt.Sprintf("d-%05d", i), "namespace": namespace},
			"spec": map[string]any{
				"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}, "spec": map[string]any{
					"containers": []any{map[string]any{"name": "c", "image": "registry.example/a:1", "ports": []any{map[string]any{"containerPort": int64(80)}},
						"env": []any{map[string]any{"name": "A", "value": "b"}}, "resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "32Mi"}}}},
				}},
			},
		}}
		return obj
	}
	// everything runs one write for each object.
	everything := func(write func(ctx context.Context, i int) error) {
		t.Helper()
		work, errs := make(chan int), make(chan error, n)
		var workers sync.WaitGroup
		for range concurrency {
			workers.Go(func() {
				for i := range work {
					if err := write(t.Context(), i); err != nil {
						errs <- err
					}
				}
			})
		}
		for i := range n {
			work <- i
		}
		close(work)
		workers.Wait()
		require.Empty(t, errs)
	}
	create := func(s *side, namespace string, labels map[string]string) func(context.Context, int) error {
		client := s.api.Dynamic().Resource(deployments).Namespace(namespace)
		return func(ctx context.Context, i int) error {
			obj := wish(namespace, i)
			obj.SetLabels(labels)
			_, err := client.Create(ctx, obj, metav1.CreateOptions{})
			return err
		}
	}
	everything(create(up, ours, map[string]string{"workloads.kcp.io/cluster": ours}))
	everything(create(up, both, nil))

	loop := measure(t, func() { everything(create(down, bare, nil)) })
	touch := up.api.Dynamic().Resource(deployments).Namespace(both)
	two := measure(t, func() {
		everything(func(ctx context.Context, i int) error {
			obj := wish(both, i)
			obj.Object = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{
				"name": obj.GetName(), "namespace": both, "finalizers": []any{"example.org/bare"},
			}}
			if _, err := touch.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "bare", Force: true}); err != nil {
				return err
			}
			return create(down, both, nil)(ctx, i)
		})
	})

	before := heap()
	w := &world{up: up, down: down}
	var synced cost
	start := func(writes int) cost {
		return measure(t, func() {
			w.start(t, syncer.Options{Workers: concurrency, Types: func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() }})
			planetest.Eventually(t, 10*time.Minute, "all is synced", func(context.Context) error {
				for _, s := range w.Status().Types {
					if s.Resource == deployments && s.Reason == "" && s.Err == nil && s.Upstream == n && s.Downstream == n {
						return nil
					}
				}
				return fmt.Errorf("%d writes of %d", w.count(), writes)
			})
		})
	}
	synced = start(2 * n)
	w.quiet(t)
	require.Len(t, w.written(), 2*n)
	idle := heap() - before
	w.stop()
	restart := start(0)
	w.quiet(t)
	require.Empty(t, w.written(), "a restart writes nothing")
	w.stop()

	before = heap()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (apiruntime.Object, error) {
			return up.api.Dynamic().Resource(deployments).Namespace(ours).List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return up.api.Dynamic().Resource(deployments).Namespace(ours).Watch(ctx, opts)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	var informing sync.WaitGroup
	informing.Go(func() { informer.RunWithContext(ctx) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	plain := heap() - before
	require.Len(t, informer.GetStore().List(), n)
	cancel()
	informing.Wait()

	per := func(d time.Duration) float64 { return d.Seconds() / float64(n) * 1000 }
	rate := func(c cost) float64 { return float64(n) / c.wall.Seconds() }
	t.Logf("%d Deployments, %d workers", n, concurrency)
	t.Logf("objects/s: syncer %.0f, bare loop %.0f (%.0f %%), bare loop of the same two writes %.0f (%.0f %%)",
		rate(synced), rate(loop), 100*rate(synced)/rate(loop), rate(two), 100*rate(synced)/rate(two))
	t.Logf("CPU s per 1000: syncer %.2f, bare loop %.2f (%.1f times), bare loop of the same two writes %.2f (%.1f times)",
		per(synced.cpu), per(loop.cpu), synced.cpu.Seconds()/loop.cpu.Seconds(), per(two.cpu), synced.cpu.Seconds()/two.cpu.Seconds())
	t.Logf("heap per object at rest: syncer (both sides) %.1f KiB, plain informer (one side) %.1f KiB (%.0f %%)",
		float64(idle)/float64(n)/1024, float64(plain)/float64(n)/1024, 100*float64(idle)/float64(plain))
	t.Logf("restart: %.1f s, CPU %.2f s per 1000, no write", restart.wall.Seconds(), per(restart.cpu))
}

// count is how many writes there were.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.writes)
}

// quiet waits until there are no more writes.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	known := -1
	planetest.Eventually(t, long, "the syncer rests", func(ctx context.Context) error {
		before := known
		known = w.count()
		if before == known {
			return nil
		}
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
		}
		return fmt.Errorf("%d writes so far", known)
	})
}
