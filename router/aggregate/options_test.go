// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// A list has at most Options.Parallel concurrent requests.
func TestParallel(t *testing.T) {
	for parallel, want := range map[int]time.Duration{1: 6 * time.Second, 2: 3 * time.Second, 6: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 6)
			defer w.close()
			for _, s := range w.servers {
				s.Inject(regiontest.Fault{Verb: "list", Do: regiontest.Delay(time.Second)})
			}
			began := time.Now()
			_, err := w.api(aggregate.Options{Parallel: parallel}).Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, want, time.Since(began))
		})
	}
}

// A region that hangs delays a get by at most Timeout, whether or not the request names this region.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		defer w.close()
		w.servers[w.keys[0]].Inject(regiontest.Fault{Verb: "get", Times: -1, Do: regiontest.Hang()})
		c := w.api(aggregate.Options{Timeout: time.Second}).Dynamic().Resource(configMaps).Namespace("default")
		for _, name := range []string{"a", "a@" + w.keys[0].String()} {
			began := time.Now()
			_, err := c.Get(t.Context(), name, metav1.GetOptions{})
			require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
			require.Equal(t, time.Second, time.Since(began), name)
		}
	})
}

// A region that fails is retried, but not before half of Retry has passed.
func TestRetry(t *testing.T) {
	bubble(t, 2, func(t *testing.T, w *world, ctx context.Context) {
		w.servers[w.keys[1]].Inject(regiontest.Fault{Verb: "watch", Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)},
			regiontest.Fault{Verb: "list", Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		watch, err := w.api(aggregate.Options{Retry: time.Minute}).Dynamic().Resource(configMaps).Watch(ctx, initial())
		require.NoError(t, err)
		asked := func() int { return len(w.servers[w.keys[1]].Requests()) }
		time.Sleep(25 * time.Second)
		synctest.Wait()
		first := asked()
		require.Positive(t, first)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		require.Equal(t, first, asked(), "half a minute has not passed")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, asked(), first)
		watch.Stop()
	})
}
