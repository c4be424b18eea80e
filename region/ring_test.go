// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scripted is a Source that publishes the snapshots of a test.
type scripted struct {
	snapshots chan *Snapshot
	fail      chan error

	mu        sync.Mutex
	refreshed int
}

func newScripted() *scripted {
	return &scripted{snapshots: make(chan *Snapshot), fail: make(chan error)}
}

func (s *scripted) Run(ctx context.Context, publish func(*Snapshot)) error {
	for {
		select {
		case snapshot := <-s.snapshots:
			publish(snapshot)
		case err := <-s.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *scripted) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshed++
}

func (s *scripted) publish(t *testing.T, peers ...Peer) {
	t.Helper()
	snapshot, err := NewSnapshot(peers...)
	require.NoError(t, err)
	s.snapshots <- snapshot
	synctest.Wait()
}

// startRing runs a Ring until the test's bubble ends.
func startRing(t *testing.T, src Source) *Ring {
	t.Helper()
	return startRingOf(t, src, Options{})
}

func startRingOf(t *testing.T, src Source, opts Options) *Ring {
	t.Helper()
	r, err := NewRing(src, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return r
}

func connOf(t *testing.T, d Directory, name PeerName) *Conn {
	t.Helper()
	c, err := d.Conn(name)
	require.NoError(t, err)
	return c
}

func TestHealthHasHysteresis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		src := newScripted()
		r := startRing(t, src)
		require.Zero(t, r.Snapshot().Len())
		_, err := r.Conn("eu")
		require.ErrorIs(t, err, ErrUnknownPeer)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		<-r.Synced()
		conn := connOf(t, r, "eu")
		require.Equal(t, Healthy, conn.Health().State)
		require.Equal(t, time.Now(), conn.Health().LastContact.In(time.Now().Location()))

		// The next probe fails at 11 s at the latest, and is followed by two more, about 1 and 2 seconds apart.
		c.setDown(true)
		down := time.Now()
		for conn.Health().State == Healthy {
			require.NoError(t, conn.Health().Err)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		require.WithinDuration(t, down.Add(12*time.Second), time.Now(), 2500*time.Millisecond)
		require.Equal(t, Unhealthy, conn.Health().State)
		require.ErrorContains(t, conn.Health().Err, "peer eu: probe: ")

		// The backoff is bounded, and one successful probe does not make the peer Healthy.
		time.Sleep(10 * time.Minute)
		c.setDown(false)
		up := time.Now()
		for conn.Health().State == Unhealthy {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		require.Less(t, time.Since(up), 35*time.Second)
		require.Greater(t, time.Since(up), 900*time.Millisecond)
		require.NoError(t, conn.Health().Err)
	})
}

func TestRingRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a", "b")
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		conn := connOf(t, r, "eu")
		before := r.Snapshot()

		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		require.Same(t, before, r.Snapshot(), "nothing changed")

		// A Conn never rotates to another cluster, however often the Ring tries.
		other := newCluster("two", "a")
		src.publish(t, Peer{Name: "eu", Credentials: other.credentials(t, "a")})
		time.Sleep(5 * time.Minute)
		require.EqualValues(t, 1, conn.Health().Generation)
		require.Equal(t, Healthy, conn.Health().State)

		// The old token is rejected: the Source is asked to refresh, and requests wait for the new token.
		c.setToken("a", false)
		result := make(chan error, 1)
		go func() {
			_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
			result <- err
		}()
		synctest.Wait()
		src.mu.Lock()
		require.Positive(t, src.refreshed)
		src.mu.Unlock()
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "b")})
		require.NoError(t, <-result)
		require.Same(t, conn, connOf(t, r, "eu"))
		require.EqualValues(t, 2, conn.Health().Generation)
		require.Greater(t, r.Snapshot().Generation(), before.Generation())

		// Credentials that the Source can no longer read change nothing.
		src.publish(t, Peer{Name: "eu", Credentials: Credentials{err: errors.New("unreadable")}})
		_, err := conn.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.NoError(t, err)
	})
}

// New credentials are used at once, even while a probe waits because its credentials were rejected or because the peer
// does not respond.
func TestAProbeDoesNotDelayNewCredentials(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(c *cluster)
		mend  func(c *cluster)
	}{
		{"its credentials are refused", func(c *cluster) { c.setToken("a", false) }, func(*cluster) {}},
		{"the peer does not answer it", func(c *cluster) { c.setHanging(true) }, func(c *cluster) { c.setHanging(false) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("one", "a", "b")
				src := newScripted()
				r := startRing(t, src)
				src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
				conn := connOf(t, r, "eu")
				require.Equal(t, Healthy, conn.Health().State)
				tc.spoil(c)
				for before := c.received(); c.received() == before; {
					time.Sleep(100 * time.Millisecond)
				}
				tc.mend(c)
				src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "b")})
				synctest.Wait()
				require.EqualValues(t, 2, conn.Health().Generation)
				require.Equal(t, Healthy, conn.Health().State)
			})
		})
	}
}

func TestOneClusterUnderTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")}, Peer{Name: "us", Credentials: c.credentials(t, "a")})
		require.Equal(t, Healthy, connOf(t, r, "eu").Health().State)
		h := connOf(t, r, "us").Health()
		require.Equal(t, Unhealthy, h.State)
		require.ErrorIs(t, h.Err, ErrSameCluster)
		require.ErrorContains(t, h.Err, "eu and us")

		// Once the peer eu has left, the peer us may have the cluster.
		src.publish(t, Peer{Name: "us", Credentials: c.credentials(t, "a")})
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, Healthy, connOf(t, r, "us").Health().State)
	})
}

// A cluster that gets another name in one Snapshot does not count as a duplicate.
func TestOneClusterUnderANewName(t *testing.T) {
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster("one", "a")
			src := newScripted()
			r := startRing(t, src)
			src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
			require.Equal(t, Healthy, connOf(t, r, "eu").Health().State)
			src.publish(t, Peer{Name: "us", Credentials: c.credentials(t, "a")})
			require.Equal(t, Healthy, connOf(t, r, "us").Health().State)
		})
	}
}

func TestDeadPeerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := newCluster("dead", "a")
		creds := dead.credentials(t, "a")
		creds.config.Transport = roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		src := newScripted()
		r := startRing(t, src)
		began := time.Now()
		src.publish(t,
			Peer{Name: "dead", Credentials: creds},
			Peer{Name: "eu", Credentials: newCluster("one", "a").credentials(t, "a")},
			Peer{Name: "none"},
		)
		<-r.Synced()
		require.Equal(t, Healthy, connOf(t, r, "eu").Health().State)
		require.Equal(t, Unknown, connOf(t, r, "dead").Health().State)
		require.Equal(t, began, time.Now())
		_, err := r.Conn("none")
		require.ErrorContains(t, err, "peer none: connect: has no credentials")
		time.Sleep(time.Minute)
		require.Equal(t, Unhealthy, connOf(t, r, "dead").Health().State)
		require.ErrorIs(t, connOf(t, r, "dead").Health().Err, ErrUnavailable)
	})
}

func TestConnOfAPeerThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("one", "a")
		src := newScripted()
		r := startRing(t, src)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		old := connOf(t, r, "eu")
		src.publish(t)
		_, err := old.Dynamic().Resource(widgets).Get(t.Context(), "w", metav1.GetOptions{})
		require.ErrorIs(t, err, ErrUnknownPeer)
		src.publish(t, Peer{Name: "eu", Credentials: c.credentials(t, "a")})
		require.NotSame(t, old, connOf(t, r, "eu"))
		require.Equal(t, Healthy, connOf(t, r, "eu").Health().State)
	})
}

func TestWatchYieldsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		creds := newCluster("one", "a").credentials(t, "a")
		src := newScripted()
		r := startRing(t, src)
		ctx, cancel := context.WithCancel(t.Context())
		lengths := make(chan int)
		go func() {
			defer close(lengths)
			for s := range r.Watch(ctx) {
				lengths <- s.Len()
			}
		}()
		src.publish(t, Peer{Name: "eu", Credentials: creds})
		src.publish(t)
		src.publish(t, Peer{Name: "eu", Credentials: creds}, Peer{Name: "us", Credentials: creds})
		require.Equal(t, 1, <-lengths)
		require.Equal(t, 2, <-lengths, "outdated snapshots are skipped")
		cancel()
		_, open := <-lengths
		require.False(t, open)
	})
}

func TestRingEndsWithItsSource(t *testing.T) {
	src := newScripted()
	r, err := NewRing(src, Options{})
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- r.Start(t.Context()) }()
	src.fail <- errors.New("the disk is gone")
	require.EqualError(t, <-ended, "ring: the disk is gone")
	require.ErrorContains(t, r.Start(t.Context()), "called twice")
	_, err = NewRing(nil, Options{})
	require.Error(t, err)
	_, err = NewRing(src, Options{Probe: ProbeOptions{Interval: -1}})
	require.Error(t, err)
}
