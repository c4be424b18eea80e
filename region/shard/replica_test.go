// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/internal/rightstest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/shard"
)

func TestMain(m *testing.M) { maintest.Main(m) }

const (
	namespace = "kube-public"
	group     = "work"
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// line is one replica's connection to the plane.
type line struct {
	next http.RoundTripper

	mu      sync.Mutex
	stopped chan struct{} // requests and events wait until it is closed; nil: they pass
	watches bool          // only watches wait
	cut     bool          // requests fail, and events are dropped
}

func (l *line) stop(watchesOnly bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped, l.watches = make(chan struct{}), watchesOnly
}

func (l *line) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.stopped)
	l.stopped = nil
}

func (l *line) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
}

// pass waits while the line is stopped, and returns false if it is cut.
func (l *line) pass(ctx context.Context, watch bool) bool {
	l.mu.Lock()
	stopped, cut := l.stopped, l.cut
	if l.watches && !watch {
		stopped = nil
	}
	l.mu.Unlock()
	if cut {
		return false
	}
	if stopped != nil {
		select {
		case <-stopped:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Has("watch")
	if !l.pass(r.Context(), watch) {
		return nil, io.ErrUnexpectedEOF
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil && watch {
		resp.Body = &events{ReadCloser: resp.Body, line: l, ctx: r.Context}
	}
	return resp, err
}

type events struct {
	io.ReadCloser
	line *line
	ctx  func() context.Context
}

func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if !e.line.pass(e.ctx(), true) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// replica is a running replica.
type replica struct {
	*shard.Members
	line        *line
	mu          sync.Mutex
	generations []uint64
	end         func() // returns when the replica has ended
}

func api(t *testing.T, s *regiontest.Server, l *line) region.API {
	t.Helper()
	config := s.Config()
	config.BearerToken = rightstest.Program // a server without tokens accepts any token
	if l != nil {
		l.next = config.Transport
		config.Transport = l
	}
	plane, err := region.APIFor(config)
	require.NoError(t, err)
	return plane
}

func start(ctx context.Context, t *testing.T, s *regiontest.Server, opts shard.Options) *replica {
	t.Helper()
	r := &replica{line: &line{}}
	var err error
	r.Members, err = shard.New(api(t, s, r.line), namespace, group, opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Start(ctx) })
	wg.Go(func() {
		for g := range r.Watch(ctx) {
			r.mu.Lock()
			r.generations = append(r.generations, g)
			r.mu.Unlock()
		}
	})
	r.end = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(r.end)
	return r
}

// die ends a replica like a crash: its last requests do not reach the plane.
func (r *replica) die() {
	r.line.kill()
	r.end()
}

func (r *replica) reported() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.generations)
}

// several starts n replicas, replica-0 and so on, and waits until they share the keys.
func several(t *testing.T, s *regiontest.Server, n int) []*replica {
	t.Helper()
	var all []*replica
	for i := range n {
		all = append(all, start(t.Context(), t, s, shard.Options{Identity: fmt.Sprintf("replica-%d", i)}))
	}
	synctest.Wait()
	return all
}

const keys = 1000

// owners returns the replicas that own each key according to themselves.
func owners(all ...*replica) [keys][]string {
	var found [keys][]string
	for i := range keys {
		for _, r := range all {
			if r.Owns(fmt.Sprintf("key-%d", i)) {
				found[i] = append(found[i], r.Identity())
			}
		}
	}
	return found
}

// share asserts that each key has exactly one owner and that each replica has keys. It returns the number of keys of
// each replica.
func share(t *testing.T, all ...*replica) map[string]int {
	t.Helper()
	shares := map[string]int{}
	for i, o := range owners(all...) {
		require.Len(t, o, 1, "key-%d", i)
		shares[o[0]]++
	}
	require.Len(t, shares, len(all), "every replica has keys")
	return shares
}
