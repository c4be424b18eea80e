// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/router/aggregate"
)

// An unmodified informer of client-go watches regions during a schedule of writes and faults. The regions have objects
// of the same names. After the faults, the informer's cache equals the union of the regions' objects, and the informer
// has refused no event.
func TestInformer(t *testing.T) {
	for seed := range seeds(t, 12) {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			s := newSchedule(t, seed, false)
			defer s.close()
			s.qualify = true
			ctx, cancel := context.WithCancel(t.Context())
			s.start(ctx)
			defer func() { s.serving().end() }()
			example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			informer := cache.NewSharedIndexInformer(s, example, 0, cache.Indexers{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				informer.RunWithContext(ctx)
			}()
			defer func() {
				cancel()
				<-done
			}()
			for range 3 * actions {
				s.act(ctx)
				if s.rng.IntN(3) == 0 {
					time.Sleep(time.Duration(s.rng.Int64N(int64(20 * time.Second))))
				}
			}
			for _, k := range s.keys {
				s.partition(k, false)
			}
			time.Sleep(15 * time.Minute)
			synctest.Wait()
			want, got := map[string]string{}, map[string]string{}
			for _, k := range s.present {
				objects, err := s.servers[k].Objects(configMaps.GroupResource())
				require.NoError(t, err)
				for _, o := range objects {
					u := &unstructured.Unstructured{Object: o}
					want["default/"+u.GetName()+"@"+k.String()] = text(u)
				}
			}
			for _, o := range informer.GetStore().List() {
				u, ok := o.(*unstructured.Unstructured)
				require.True(t, ok)
				got[u.GetNamespace()+"/"+u.GetName()] = text(u)
			}
			require.True(t, informer.HasSynced())
			require.Empty(t, cmp.Diff(want, got))
			require.Empty(t, refused(), "events that the informer did not take")
		})
	}
}

// An informer never sees the objects of a region that does not answer as deleted: not while its watch goes on, and not if
// it has to list again meanwhile. This holds for an informer that lists, and for one that asks for initial events.
func TestAnInformerSeesNoFalseDeletion(t *testing.T) {
	for _, lists := range []bool{true, false} {
		t.Run(fmt.Sprintf("lists=%t", lists), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2)
				defer w.close()
				away, there := w.keys[1], w.keys[0]
				w.put(there, "a", "b")
				w.put(away, "c")
				f := &front{}
				start := func(n int) {
					f.replace(w.api(aggregate.Options{Keys: keyring(t, secret(n)), Qualify: true}).Reader("", configMaps))
				}
				start(1)
				var from cache.ListerWatcher = f
				if lists {
					from = lister{f}
				}
				informer := inform(t, from)
				defer informer.stop()
				stored := informer.stored
				stored("default/a@r0.loodse", "default/b@r0.loodse", "default/c@r1.loodse")

				w.servers[away].Partition(true)
				require.NoError(t, w.clients[there].Resource(configMaps).Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
				w.put(there, "d")
				stored("default/b@r0.loodse", "default/d@r0.loodse", "default/c@r1.loodse")
				require.Equal(t, []string{"default/a@r0.loodse"}, informer.deleted, "the watch goes on")

				start(2) // no token is valid any more
				stored("default/b@r0.loodse", "default/d@r0.loodse", "default/c@r1.loodse")
				w.put(there, "e")
				w.servers[away].Partition(false)
				stored("default/b@r0.loodse", "default/d@r0.loodse", "default/c@r1.loodse", "default/e@r0.loodse")
				require.Equal(t, []string{"default/a@r0.loodse"}, informer.deleted)
				require.Empty(t, refused(), "events that the informer did not take")
			})
		})
	}
}

// informed is an informer of ConfigMaps in virtual time, with the keys that it has seen as deleted.
type informed struct {
	cache.SharedIndexInformer
	t       *testing.T
	deleted []string
	stop    func() // waits for its goroutines
}

// inform starts an informer.
func inform(t *testing.T, from cache.ListerWatcher) *informed {
	t.Helper()
	example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	i := &informed{SharedIndexInformer: cache.NewSharedIndexInformer(from, example, 0, cache.Indexers{}), t: t}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
		i.deleted = append(i.deleted, key)
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	i.stop = func() {
		cancel()
		<-done
	}
	return i
}

// stored requires that the informer has exactly the named objects, after ten minutes.
func (i *informed) stored(names ...string) {
	i.t.Helper()
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	require.True(i.t, i.HasSynced())
	require.ElementsMatch(i.t, names, i.GetStore().ListKeys())
}

// lister is a front for an informer that lists before it watches, as those of earlier releases of client-go do.
type lister struct{ *front }

func (lister) IsWatchListSemanticsUnSupported() bool { return true }
