// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
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
			s.api = s.world.api(aggregate.Options{Qualify: true, Observer: s.observer()})
			example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			informer := cache.NewSharedIndexInformer(s.api.Reader("", configMaps), example, 0, cache.Indexers{})
			ctx, cancel := context.WithCancel(t.Context())
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
				s.act()
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
