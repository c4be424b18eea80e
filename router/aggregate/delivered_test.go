// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// policed is a front whose requests have a policy.
type policed struct {
	*front

	policy aggregate.Policy
}

func (p policed) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return p.front.ListWithContext(aggregate.WithPolicy(ctx, p.policy), opts)
}

func (p policed) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return p.front.WatchWithContext(aggregate.WithPolicy(ctx, p.policy), opts)
}

type policedLister struct{ policed }

func (policedLister) IsWatchListSemanticsUnSupported() bool { return true }

// With RequireDelivered an informer starts with the regions that answer, and gets the objects of the others when they
// answer. From then on it lists no less, so it never sees objects as deleted. With All it waits for all regions.
func TestAnInformerStartsWithoutARegion(t *testing.T) {
	for _, lists := range []bool{true, false} {
		for _, all := range []bool{true, false} {
			t.Run(fmt.Sprintf("lists=%t,all=%t", lists, all), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { startWithoutARegion(t, lists, all) })
			})
		}
	}
}

func startWithoutARegion(t *testing.T, lists, all bool) {
	t.Helper()
	w := newWorld(t, 2)
	defer w.close()
	there, away := w.keys[0], w.keys[1]
	w.put(there, "a")
	w.put(away, "b")
	w.servers[away].Partition(true)
	f := &front{}
	serve := func(n int) {
		f.replace(w.api(aggregate.Options{Keys: keyring(t, secret(n)), Qualify: true}).Reader("", configMaps))
	}
	serve(1)
	var delivered aggregate.Delivered
	p := policed{f, aggregate.RequireDelivered(&delivered)}
	if all {
		p.policy = aggregate.All()
	}
	var from cache.ListerWatcher = p
	if lists {
		from = policedLister{p}
	}
	informer := inform(t, from)
	defer informer.stop()
	stored := informer.stored
	if all {
		time.Sleep(10 * time.Minute)
		require.False(t, informer.HasSynced())
		w.servers[away].Partition(false)
		stored("default/a@r0.loodse", "default/b@r1.loodse")
		return
	}
	stored("default/a@r0.loodse")
	require.Equal(t, []region.Key{away}, delivered.Missing())

	serve(2) // no token is valid any more: the informer starts again, still without the region
	w.put(there, "c")
	stored("default/a@r0.loodse", "default/c@r0.loodse")
	require.Equal(t, []region.Key{away}, delivered.Missing())

	w.servers[away].Partition(false)
	stored("default/a@r0.loodse", "default/c@r0.loodse", "default/b@r1.loodse")
	require.Empty(t, delivered.Missing())

	w.servers[away].Partition(true)
	serve(3) // now the informer must wait for the region
	stored("default/a@r0.loodse", "default/c@r0.loodse", "default/b@r1.loodse")
	require.Empty(t, delivered.Missing())
	require.NoError(t, w.clients[there].Resource(configMaps).Namespace("default").Delete(t.Context(), "c", metav1.DeleteOptions{}))
	w.servers[away].Partition(false)
	stored("default/a@r0.loodse", "default/b@r1.loodse")
	require.Equal(t, []string{"default/c@r0.loodse"}, informer.deleted)
	require.Empty(t, refused(), "events that the informer did not take")
}
