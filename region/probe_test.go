// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBackoffIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ProbeOptions{
			Interval:   time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "interval")),
			MaxBackoff: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "max")),
		}
		require.NoError(t, o.complete())
		d := o.backoff(rapid.IntRange(1, 1000).Draw(t, "failures"))
		require.GreaterOrEqual(t, d, minBackoff)
		require.LessOrEqual(t, d, max(o.MaxBackoff, minBackoff))
	})
}

// A failing peer is probed with a growing backoff, up to MaxBackoff.
func TestBackoffDoubles(t *testing.T) {
	o := ProbeOptions{Interval: 10 * time.Second, MaxBackoff: time.Minute}
	require.NoError(t, o.complete())
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		require.InEpsilon(t, float64(want*time.Second), float64(o.backoff(i+1)), 0.11, "after %d failures", i+1)
	}
}

// One success or one failed probe changes nothing: a peer becomes Unhealthy after Failures failed probes in a row, and
// Healthy again after Successes successful probes in a row. ErrOtherCluster makes a peer Unhealthy at once.
func TestProbesInARow(t *testing.T) {
	failure := errors.New("no answer")
	p := prober{opts: ProbeOptions{Failures: 3, Successes: 2}}
	h := p.judge(Health{}, nil)
	for i, tc := range []struct {
		err  error
		want HealthState
	}{
		{failure, Healthy}, {failure, Healthy}, {nil, Healthy}, {failure, Healthy}, {failure, Healthy}, {failure, Unhealthy},
		{nil, Unhealthy}, {failure, Unhealthy}, {nil, Unhealthy}, {nil, Healthy}, {ErrOtherCluster, Unhealthy},
	} {
		h = p.judge(h, tc.err)
		require.Equal(t, tc.want, h.State, "%d", i)
	}
}

// probes records when a peer was probed.
type probes struct {
	mu    sync.Mutex
	began time.Time
	at    []time.Duration
}

func (p *probes) observer() *Observer {
	return &Observer{Probed: func(_ context.Context, e ProbeEvent) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.at = append(p.at, time.Since(p.began)-e.Elapsed)
	}}
}

func (p *probes) times() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// After a rejected credential the peer is probed once more at once, then with backoff.
func TestRefusedProbeIsRepeatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one")
		p := &probes{began: time.Now()}
		source, err := FromPeers(Peer{Name: "eu", Credentials: c.credentials(t, "unknown")})
		require.NoError(t, err)
		ring, err := NewRing(source, Options{Observer: p.observer()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.Start(ctx) }()
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 0}, p.times())
		conn := connOf(t, ring, "eu")
		require.Equal(t, Unknown, conn.Health().State)
		require.ErrorContains(t, conn.Health().Err, "provide credentials")
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		require.Len(t, p.times(), 3)
		require.Equal(t, Unhealthy, conn.Health().State)
		cancel()
		require.NoError(t, <-ended)
	})
}

// Credentials that arrive while the peer is unreachable are used once it is reachable again.
func TestRotationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		c.setDown(true)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "b")})
		time.Sleep(10 * time.Minute)
		require.EqualValues(t, 1, conn.Health().Generation)
		c.setDown(false)
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, conn.Health().Generation)
		require.Equal(t, Healthy, conn.Health().State)
	})
}
