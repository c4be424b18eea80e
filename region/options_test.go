// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The options Drain, Probe and Observer of a Ring take effect.
func TestRingOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		c.answer = func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		src := newScripted()
		probes := make(chan time.Duration, 100) // how long each probe took
		r, err := NewRing(src, Options{
			Drain:    7 * time.Second,
			Probe:    ProbeOptions{Interval: time.Minute, Timeout: 2 * time.Second, Failures: 2, Successes: 4, MaxBackoff: 10 * time.Second},
			Observer: &Observer{Probed: func(_ context.Context, e ProbeEvent) { probes <- e.Elapsed }},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()

		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		watch, err := conn.Dynamic().Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		began := time.Now()
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "b")})
		for range watch.ResultChan() {
		}
		require.Equal(t, 7*time.Second, time.Since(began))

		// until waits for n probes. It returns how long all of them took, and how long the last one
		// took.
		until := func(n int) (all, last time.Duration) {
			for began := time.Now(); n > 0; n-- {
				last, all = <-probes, time.Since(began)
			}
			synctest.Wait()
			return all, last
		}
		synctest.Wait()
		for len(probes) > 0 {
			<-probes
		}
		all, _ := until(1)
		require.InDelta(t, time.Minute, all, float64(15*time.Second))
		c.setHanging(true)
		_, last := until(1)
		require.Equal(t, 2*time.Second, last)
		require.Equal(t, Healthy, conn.Health().State)
		until(1)
		require.Equal(t, Unhealthy, conn.Health().State)
		until(5)
		all, _ = until(3)
		require.Less(t, all, 3*(2+11)*time.Second)
		c.setHanging(false)
		until(4) // the first one may have begun earlier
		if conn.Health().State == Unhealthy {
			until(1)
		}
		require.Equal(t, Healthy, conn.Health().State)
		cancel()
		require.NoError(t, <-ended)
	})
}
