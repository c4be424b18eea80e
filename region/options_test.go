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

// Every option of a Ring does what it says.
func TestRingOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		c.answer = func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		src := newScripted()
		var probes []time.Duration
		r, err := NewRing(src, Options{
			Drain:    7 * time.Second,
			Probe:    ProbeOptions{Interval: time.Minute, Timeout: 2 * time.Second, Failures: 2, Successes: 4, MaxBackoff: 10 * time.Second},
			Observer: &Observer{Probed: func(_ context.Context, e ProbeEvent) { probes = append(probes, e.Elapsed) }},
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

		// until waits for so many probes, and says how long they took together with the pauses before them.
		until := func(n int) time.Duration {
			began := time.Now()
			for probes = nil; len(probes) < n; synctest.Wait() {
				time.Sleep(10 * time.Millisecond)
			}
			return time.Since(began)
		}
		require.InDelta(t, time.Minute, until(1), float64(15*time.Second))
		c.setHanging(true)
		until(1)
		require.Equal(t, 2*time.Second, probes[0])
		require.Equal(t, Healthy, conn.Health().State)
		until(1)
		require.Equal(t, Unhealthy, conn.Health().State)
		until(5)
		require.Less(t, until(3), 3*(2+11)*time.Second)
		c.setHanging(false)
		until(4) // the first one may have begun before
		if conn.Health().State == Unhealthy {
			until(1)
		}
		require.Equal(t, Healthy, conn.Health().State)
		cancel()
		require.NoError(t, <-ended)
	})
}
