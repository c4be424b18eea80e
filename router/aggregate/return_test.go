// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// ice is a transport to a server that a test can freeze. Requests sent to the frozen server are never answered.
type ice struct {
	next   http.RoundTripper
	mu     sync.Mutex
	frozen bool
	cut    map[io.Closer]bool // the responses that are still open
}

func (i *ice) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.isFrozen() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp, err := i.next.RoundTrip(r)
	if err == nil {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cut[resp.Body] = true
	}
	return resp, err
}

func (i *ice) isFrozen() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.frozen
}

// freeze sets whether the server is frozen. When it freezes the server, it also closes the open responses, as a
// client does when its connection times out.
func (i *ice) freeze(frozen bool) {
	i.mu.Lock()
	i.frozen = frozen
	open := i.cut
	i.cut = map[io.Closer]bool{}
	i.mu.Unlock()
	if frozen {
		for body := range open {
			_ = body.Close()
		}
	}
}

// probed is a Router over a Ring that probes two servers. The test can freeze the second server.
type probed struct {
	keys    []region.Key
	servers []*regiontest.Server
	clients []dynamic.Interface // clients that bypass the ice
	ice     *ice
	routes  *router.Router
	set     aggregate.Set
	end     func() // stops the ring
}

func newProbed(t *testing.T) *probed {
	t.Helper()
	p := &probed{}
	var peers []region.Peer
	for i, name := range []region.PeerName{"a", "b"} {
		server := regiontest.NewServer(regiontest.Options{Name: string(name)})
		config := server.Config()
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		p.keys, p.servers, p.clients = append(p.keys, key(i)), append(p.servers, server), append(p.clients, client)
		if i == 1 {
			p.ice = &ice{next: config.Transport, cut: map[io.Closer]bool{}}
			config.Transport = p.ice
		}
		credentials, err := region.FromConfig(config)
		require.NoError(t, err)
		peers = append(peers, region.Peer{Name: name, Credentials: credentials, Regions: []region.Key{key(i)}})
	}
	source, err := region.FromPeers(peers...)
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	<-ring.Synced()
	p.end = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	p.routes, err = router.New(ring, router.Options{})
	require.NoError(t, err)
	p.set, err = aggregate.Regions(p.routes, router.Self(), nil)
	require.NoError(t, err)
	synctest.Wait()
	return p
}

func (p *probed) close() {
	p.end()
	synctest.Wait()
	for _, s := range p.servers {
		s.Close()
	}
}

// A region is unreachable for between one second and seven minutes: it refuses connections, or it does not answer at
// all. Its events arrive within one probe interval after it is reachable again.
func TestARegionThatReturnsDeliversWithinTheProbeInterval(t *testing.T) {
	const interval = 10 * time.Second // the default
	for _, frozen := range []bool{false, true} {
		for _, away := range []time.Duration{
			time.Second, 4 * time.Second, 12 * time.Second, 17 * time.Second, 31 * time.Second, 53 * time.Second, 2*time.Minute + 3*time.Second, 7 * time.Minute,
		} {
			t.Run(map[bool]string{false: "refused for ", true: "frozen for "}[frozen]+away.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newProbed(t)
					defer p.close()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					api, err := aggregate.New(p.set, aggregate.Options{Bookmark: time.Hour})
					require.NoError(t, err)
					stream, err := api.Reader("", configMaps).WatchWithContext(ctx, initial())
					require.NoError(t, err)
					require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream))
					set := p.ice.freeze
					if !frozen {
						set = p.servers[1].Partition
					}
					set(true)
					time.Sleep(away)
					set(false)
					_, err = p.clients[1].Resource(configMaps).Namespace("default").Create(ctx, configMap("x", "1"), metav1.CreateOptions{})
					require.NoError(t, err)
					back := time.Now()
					e := <-stream.ResultChan()
					require.Equal(t, "ADDED r1.loodse/x", describe(e))
					require.LessOrEqual(t, time.Since(back), interval)
					cancel()
					for range stream.ResultChan() {
					}
				})
			})
		}
	}
}

// The delay between attempts may be much longer than the probe interval: a region that has recovered is asked at once.
func TestARecoveredRegionIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbed(t)
		defer p.close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		api, err := aggregate.New(p.set, aggregate.Options{Bookmark: time.Hour, Retry: time.Hour})
		require.NoError(t, err)
		stream, err := api.Reader("", configMaps).WatchWithContext(ctx, initial())
		require.NoError(t, err)
		require.Equal(t, []string{"end of initial events of ConfigMap"}, arrived(stream))
		p.servers[1].Partition(true)
		time.Sleep(time.Minute)
		p.servers[1].Partition(false)
		_, err = p.clients[1].Resource(configMaps).Namespace("default").Create(ctx, configMap("x", "1"), metav1.CreateOptions{})
		require.NoError(t, err)
		back := time.Now()
		require.Equal(t, "ADDED r1.loodse/x", describe(<-stream.ResultChan()))
		require.LessOrEqual(t, time.Since(back), 10*time.Second, "the probe interval")
		cancel()
		for range stream.ResultChan() {
		}
	})
}

// A frozen region delays a list by Options.Answer. Once its probes have failed, lists skip the region and have no
// delay. Lists ask the region again once it has answered a probe. If probing has stopped, they ask it again after a
// minute.
func TestAFrozenRegionCostsAListLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbed(t)
		defer p.close()
		api, err := aggregate.New(p.set, aggregate.Options{})
		require.NoError(t, err)
		c := api.Dynamic().Resource(configMaps).Namespace("default")
		list := func() (states []aggregate.State, took time.Duration) {
			began := time.Now()
			ctx, report := aggregate.WithReport(t.Context())
			_, err := c.List(partial(ctx), metav1.ListOptions{})
			require.NoError(t, err)
			for _, o := range report.Outcomes() {
				states = append(states, o.State)
			}
			require.Equal(t, report.Complete(), len(report.Warnings()) == 0)
			return states, time.Since(began)
		}
		want := func(state aggregate.State, took time.Duration) {
			t.Helper()
			states, elapsed := list()
			require.Equal(t, []aggregate.State{aggregate.Empty, state}, states)
			require.Equal(t, took, elapsed)
		}
		want(aggregate.Empty, 0)
		p.ice.freeze(true)
		want(aggregate.Timeout, 5*time.Second)
		time.Sleep(time.Minute)
		want(aggregate.Unreachable, 0)
		began := time.Now()
		_, err = c.Get(t.Context(), "x", metav1.GetOptions{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.Zero(t, time.Since(began))

		p.ice.freeze(false)
		time.Sleep(10 * time.Second)
		want(aggregate.Empty, 0)

		p.ice.freeze(true)
		time.Sleep(time.Minute)
		want(aggregate.Unreachable, 0)
		p.end()
		p.ice.freeze(false)
		want(aggregate.Unreachable, 0)
		time.Sleep(time.Minute)
		want(aggregate.Empty, 0)
	})
}

// slow is a transport that delivers the first byte of a response at once and delays the rest.
type slow struct{ next http.RoundTripper }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotFirstResponseByte()
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(&slowly{done: r.Context().Done(), rest: bytes.NewReader(data)})
	return resp, err
}

type slowly struct {
	done <-chan struct{}
	rest io.Reader
}

func (s *slowly) Read(p []byte) (int, error) {
	select {
	case <-time.After(20 * time.Second):
		return s.rest.Read(p)
	case <-s.done:
		return 0, context.Canceled
	}
}

// Options.Answer limits only the time until an answer begins, not the time until it ends.
func TestAnAnswerThatHasBegunHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := regiontest.NewServer(regiontest.Options{Name: "slow"})
		defer server.Close()
		config := rest.CopyConfig(server.Config())
		config.Transport = slow{config.Transport}
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		set, err := aggregate.Fixed(aggregate.Member{Region: key(0), Client: client})
		require.NoError(t, err)
		for timeout, want := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
			api, err := aggregate.New(set, aggregate.Options{Timeout: timeout, Answer: time.Second})
			require.NoError(t, err)
			_, err = api.Reader("", configMaps).ListAll(t.Context(), metav1.ListOptions{})
			require.Equal(t, want, err == nil, "%v", err)
		}
	})
}
