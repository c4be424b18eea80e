// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The clusters follow the peers of the Directory: a peer that joins has a cluster of its own, and a peer that leaves has
// none any more.
func TestClustersFollowThePeers(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	t.Cleanup(ring.Close)
	c, err := New(ring, Options{})
	require.NoError(t, err)
	_, err = c.Get("eu")
	require.ErrorIs(t, err, ErrNotEngaged)
	start(t, c)
	for _, peer := range []region.PeerName{"eu", "us"} {
		engaged(t, c, peer)
		cl, err := c.Get(peer)
		require.NoError(t, err)
		require.NoError(t, cl.GetClient().Create(t.Context(), configMap("of-"+string(peer))))
		eventually(t, want(t, cl.GetCache(), "of-"+string(peer)))
	}
	_, err = c.Get("ap")
	require.ErrorIs(t, err, region.ErrUnknownPeer)
	require.ErrorContains(t, err, `peer "ap"`)

	require.NoError(t, ring.Join("ap", regiontest.NewServer(regiontest.Options{})))
	engaged(t, c, "ap")
	require.NoError(t, ring.Leave("us"))
	eventually(t, func() error {
		if _, err := c.Get("us"); !errors.Is(err, region.ErrUnknownPeer) {
			return fmt.Errorf("want ErrUnknownPeer, got %w", err)
		}
		return nil
	})
}

// A peer that does not answer at the start delays no other peer, and is engaged when it answers.
func TestAPeerThatIsAwayAtTheStart(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	t.Cleanup(ring.Close)
	ring.Partition("us", true)
	c, err := New(ring, Options{})
	require.NoError(t, err)
	require.NoError(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "of", byLabel))
	start(t, c)
	engaged(t, c, "eu")
	_, err = c.Get("us")
	require.ErrorIs(t, err, ErrNotEngaged)
	ring.Partition("us", false)
	engaged(t, c, "us")
	us, err := c.Get("us")
	require.NoError(t, err)
	require.Empty(t, names(t, us.GetCache(), client.MatchingFields{"of": "x"}), "it has the index")
}

func byLabel(o client.Object) []string { return []string{o.GetLabels()["of"]} }

// An index is in the clusters that run, and in those of peers that join later. Its error names the peer that does not
// serve the type.
func TestIndexes(t *testing.T) {
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	c, err := New(ring, Options{})
	require.NoError(t, err)
	start(t, c)
	engaged(t, c, "eu")
	require.NoError(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "of", byLabel))
	require.NoError(t, ring.Join("us", regiontest.NewServer(regiontest.Options{})))
	engaged(t, c, "us")
	for _, peer := range []region.PeerName{"eu", "us"} {
		cl, err := c.Get(peer)
		require.NoError(t, err)
		for _, name := range []string{"a", "b"} {
			require.NoError(t, cl.GetClient().Create(t.Context(), configMap(name)))
		}
		eventually(t, want(t, cl.GetCache(), "a", "b"))
		require.Equal(t, []string{"b"}, names(t, cl.GetCache(), client.MatchingFields{"of": "b"}), peer)
	}
	err = c.IndexField(t.Context(), &unregistered{}, "of", byLabel)
	require.ErrorContains(t, err, "peer eu: index field of of *controllerruntime.unregistered")
	require.ErrorContains(t, err, "peer us: ")
}

type unregistered struct{ corev1.ConfigMap }

func (u *unregistered) DeepCopyObject() runtime.Object { return u }

// If engaged returns an error, the cluster ends, and another one is made. Until then, Get returns none.
func TestEngagedFails(t *testing.T) {
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	c, err := New(ring, Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var contexts []context.Context
	var seen []cluster.Cluster
	twice := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- c.Engage(ctx, func(ctx context.Context, _ region.PeerName, cl cluster.Cluster) error {
			contexts, seen = append(contexts, ctx), append(seen, cl)
			if len(seen) == 1 {
				return errors.New("not yet")
			}
			close(twice)
			return nil
		})
	}()
	<-twice
	require.Error(t, contexts[0].Err(), "the first engagement has ended")
	require.NoError(t, contexts[1].Err())
	require.NotSame(t, seen[0], seen[1])
	now, err := c.Get("eu")
	require.NoError(t, err)
	require.Same(t, seen[1], now)
	cancel()
	require.NoError(t, <-done)
	require.Error(t, contexts[1].Err())
	_, err = c.Get("eu")
	require.ErrorIs(t, err, ErrNotEngaged)
}

// Credentials rotate a hundred times, and the streams of the old ones end. The informer of 500 objects does not list
// again and misses no event; the cluster and its client are the same.
func TestRotations(t *testing.T) {
	server := regiontest.NewServer(regiontest.Options{Tokens: map[string]regiontest.User{"token-0": {Name: "atoll"}, "token-1": {Name: "atoll"}}})
	t.Cleanup(server.Close)
	credentials := func(n int) region.Credentials {
		config := server.Config()
		config.BearerToken = fmt.Sprintf("token-%d", n%2)
		creds, err := region.FromConfig(config)
		require.NoError(t, err)
		return creds
	}
	conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: credentials(0)}, region.ConnOptions{Drain: 100 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	c, err := New(region.Fixed(conn), Options{})
	require.NoError(t, err)
	start(t, c)
	engaged(t, c, "eu")
	cl, err := c.Get("eu")
	require.NoError(t, err)
	for n := range 500 {
		require.NoError(t, cl.GetClient().Create(t.Context(), configMap(fmt.Sprintf("c-%03d", n))))
	}
	require.Len(t, names(t, cl.GetCache()), 500)
	lists, watches := count(server, "list"), count(server, "watch")

	for n := range 100 {
		require.NoError(t, conn.Rotate(t.Context(), credentials(n+1)))
		require.NoError(t, cl.GetClient().Update(t.Context(), changed(n)))
	}
	eventually(t, func() error {
		if count(server, "watch") == watches {
			return errors.New("the watch with the old credentials has not ended")
		}
		return nil
	})
	require.NoError(t, cl.GetClient().Update(t.Context(), changed(100)))
	eventually(t, func() error {
		for n := range 101 {
			var seen corev1.ConfigMap
			if err := cl.GetCache().Get(t.Context(), client.ObjectKeyFromObject(changed(n)), &seen); err != nil || seen.Data["change"] != fmt.Sprint(n) {
				return fmt.Errorf("change %d: the cache has %v: %w", n, seen.Data, err)
			}
		}
		return nil
	})
	require.Len(t, names(t, cl.GetCache()), 500)
	require.Equal(t, lists, count(server, "list"), "the informer does not list again")
	now, err := c.Get("eu")
	require.NoError(t, err)
	require.Same(t, cl, now)
}

func changed(n int) *corev1.ConfigMap {
	o := configMap(fmt.Sprintf("c-%03d", n))
	o.Data = map[string]string{"change": fmt.Sprint(n)}
	return o
}

// The Clusters and a loop run in a manager that has not been elected.
func TestInAManager(t *testing.T) {
	ring := regiontest.NewRing("eu")
	t.Cleanup(ring.Close)
	host := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(host.Close)
	host.Inject(regiontest.Fault{Verb: "create", Resource: leases, Times: -1, Do: regiontest.Refuse(403)})
	m, err := manager.New(host.Config(), manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "default",
	})
	require.NoError(t, err)
	c, err := New(ring, Options{})
	require.NoError(t, err)
	require.NoError(t, m.Add(c))
	ran := make(chan struct{})
	require.NoError(t, m.Add(Loop(func(ctx context.Context) error {
		close(ran)
		<-ctx.Done()
		return ctx.Err()
	})))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	<-ran
	engaged(t, c, "eu")
	cancel()
	require.NoError(t, <-done)

	failed := errors.New("failed")
	require.ErrorIs(t, Loop(func(context.Context) error { return failed }).Start(t.Context()), failed)
}

// A loop has the logger of its context, or that of controller-runtime. A manager starts it with a context without one.
func TestTheLoggerOfALoop(t *testing.T) {
	loop := Loop(func(ctx context.Context) error {
		logger, err := logr.FromContext(ctx)
		logger.Info("running")
		return err
	})
	require.NoError(t, loop.Start(t.Context()))
	lines := logtest.New()
	require.NoError(t, loop.Start(logr.NewContext(t.Context(), lines.Logger())))
	lines.Await(t, "running")
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func TestArguments(t *testing.T) {
	_, err := New(nil, Options{})
	require.ErrorContains(t, err, "the directory is nil")
	_, err = New((*region.Ring)(nil), Options{})
	require.ErrorContains(t, err, "the directory is nil")
	_, err = New(region.Fixed(), Options{SyncTimeout: -1})
	require.ErrorContains(t, err, "Options.SyncTimeout is -1ns, want 0 (1 minute) or more")
}
