// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/e2e/ctltest"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCostAtRest logs the memory of a syncer at rest, beside that of an informer of the upstream.
// It also restarts the syncer, and requires that the syncer then writes nothing. ATOLL_OBJECTS is
// the number of objects.
func TestCostAtRest(t *testing.T) {
	n := ctltest.Count(t, "ATOLL_OBJECTS", 300)
	planes := planetest.Shared(t, 2)
	namespace := planetest.Namespace(t, planes...)
	w := &world{up: newSide(t, planes[0], namespace), down: newSide(t, planes[1], namespace)}
	everything(t, n, createIn(w.up, map[string]string{"workloads.kcp.io/cluster": namespace}))

	before := heap()
	w.startToRest(t, n)
	idle := heap() - before
	w.stop()
	require.Len(t, w.written(), 2*n)
	restart := w.startToRest(t, n)
	w.stop()
	require.Empty(t, w.written(), "a restart writes nothing")

	before = heap()
	client := w.up.api.Dynamic().Resource(deployments).Namespace(namespace)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (apiruntime.Object, error) {
			return client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, opts)
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

	t.Logf("%d Deployments", n)
	t.Logf("heap per object at rest: syncer (both sides) %.1f KiB, plain informer (one side) %.1f KiB (%.0f %%)",
		float64(idle)/float64(n)/1024, float64(plain)/float64(n)/1024, 100*float64(idle)/float64(plain))
	t.Logf("restart: CPU %.2f s per 1000, no write", restart.perThousand(restart.whole))
}
