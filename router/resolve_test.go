// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
)

// plane is a Resolver whose answer the test sets.
type plane struct {
	mu    sync.Mutex
	peer  region.PeerName
	err   error
	took  time.Duration
	calls atomic.Int64
	most  atomic.Int64 // the highest number of concurrent calls so far
	now   atomic.Int64
}

func (p *plane) say(peer region.PeerName, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peer, p.err = peer, err
}

func (p *plane) Resolve(ctx context.Context, _ region.Key) (region.PeerName, error) {
	p.calls.Add(1)
	if n := p.now.Add(1); n > p.most.Load() {
		p.most.Store(n)
	}
	defer p.now.Add(-1)
	select {
	case <-time.After(p.took):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peer, p.err
}

var errDown = errors.New("connection refused")

// bubble runs test in virtual time, with a Router whose Resolver is p.
func bubble(t *testing.T, p *plane, opts Options, test func(t *testing.T, d *directory, r *Router)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory(t)
		d.conns["a"], d.conns["b"] = nil, nil
		opts.Resolver = p
		r := newRouter(t, d, opts)
		test(t, d, r)
		r.asker.end()
	})
}

func TestOneQuestionAtATime(t *testing.T) {
	p := &plane{peer: "a", took: time.Second}
	bubble(t, p, Options{}, func(t *testing.T, _ *directory, r *Router) {
		// The first caller stops waiting; the callers that joined its question still get the
		// answer.
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.Lookup(impatient, eu)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, region.ErrUnknownRegion)
		})
		synctest.Wait()
		for range 50 {
			wg.Go(func() {
				route, err := r.Lookup(t.Context(), eu)
				require.NoError(t, err)
				require.Equal(t, region.PeerName("a"), route.Peer)
				require.Equal(t, FromResolver, route.From)
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, p.calls.Load())
		time.Sleep(10 * time.Second)
		route, err := r.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, route.Age())
		require.EqualValues(t, 1, p.calls.Load(), "a fresh answer is not asked for again")
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = r.Lookup(t.Context(), eu) }))
	})
}

func TestAResolverThatHangsHasItsOwnDeadline(t *testing.T) {
	p := &plane{took: time.Hour}
	bubble(t, p, Options{Timeout: 3 * time.Second}, func(t *testing.T, _ *directory, r *Router) {
		start := time.Now()
		_, err := r.Lookup(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestUnknownIsRemembered(t *testing.T) {
	p := &plane{err: region.ErrUnknownRegion}
	bubble(t, p, Options{}, func(t *testing.T, d *directory, r *Router) {
		miss := func(calls int) {
			t.Helper()
			_, err := r.Lookup(t.Context(), eu)
			require.ErrorIs(t, err, region.ErrUnknownRegion)
			require.NotErrorIs(t, err, region.ErrUnavailable)
			require.EqualValues(t, calls, p.calls.Load())
		}
		miss(1)
		time.Sleep(4 * time.Second)
		miss(1)
		time.Sleep(2 * time.Second)
		miss(2)
		// Any change of the Directory may add the region.
		d.serve(t, map[region.Key]region.PeerName{{Provider: "loodse", Name: "us"}: "a"})
		miss(3)
		d.serve(t, map[region.Key]region.PeerName{eu: "b"})
		route, err := r.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, Route{Region: eu, Peer: "b"}, route)
	})
}

func TestAnyNumberOfUnknownNames(t *testing.T) {
	p := &plane{err: region.ErrUnknownRegion, took: time.Millisecond}
	bubble(t, p, Options{}, func(t *testing.T, _ *directory, r *Router) {
		var wg sync.WaitGroup
		for i := range maxMisses + 100 {
			wg.Go(func() {
				_, err := r.Lookup(t.Context(), region.Key{Provider: "loodse", Name: fmt.Sprintf("r-%d", i)})
				require.ErrorIs(t, err, region.ErrUnknownRegion)
			})
		}
		wg.Wait()
		require.LessOrEqual(t, len(r.asker.misses), maxMisses)
		require.LessOrEqual(t, p.most.Load(), int64(maxQuestions))
		_, err := r.Lookup(t.Context(), region.Key{Provider: "a.b", Name: "x"})
		require.ErrorIs(t, err, region.ErrUnknownRegion)
		require.EqualValues(t, maxMisses+100, p.calls.Load(), "an invalid name is not asked about")
	})
}

func TestNoAnswerIsNotUnknown(t *testing.T) {
	p := &plane{err: errDown}
	bubble(t, p, Options{}, func(t *testing.T, _ *directory, r *Router) {
		for range 10 {
			_, err := r.Lookup(t.Context(), eu)
			require.ErrorIs(t, err, region.ErrUnavailable)
			require.ErrorIs(t, err, errDown)
			require.NotErrorIs(t, err, region.ErrUnknownRegion)
		}
		require.EqualValues(t, 1, p.calls.Load(), "a plane that is down is not hammered")
		p.say("a", nil)
		time.Sleep(failurePause)
		_, err := r.Lookup(t.Context(), eu)
		require.NoError(t, err)

		// A known route survives the failure of the Resolver.
		p.say("", errDown)
		time.Sleep(24 * time.Hour)
		for range 10 {
			route, err := r.Lookup(t.Context(), eu)
			require.NoError(t, err)
			require.Equal(t, 24*time.Hour, route.Age())
		}
		synctest.Wait()
		require.EqualValues(t, 3, p.calls.Load())
	})
}

func TestForbiddenIsAnErrorOfItsOwn(t *testing.T) {
	p := &plane{err: apierrors.NewForbidden(schema.GroupResource{Resource: "peers"}, "", errors.New("not yours"))}
	bubble(t, p, Options{}, func(t *testing.T, _ *directory, r *Router) {
		_, err := r.Lookup(t.Context(), eu)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.NotErrorIs(t, err, region.ErrUnknownRegion)
		require.NotErrorIs(t, err, region.ErrUnavailable)
	})
}

func TestAnOldAnswerIsGivenAtOnceAndAskedAnew(t *testing.T) {
	p := &plane{peer: "a", took: time.Second}
	bubble(t, p, Options{}, func(t *testing.T, _ *directory, r *Router) {
		lookup := func(want region.PeerName) {
			t.Helper()
			start := time.Now()
			route, err := r.Lookup(t.Context(), eu)
			require.NoError(t, err)
			require.Equal(t, want, route.Peer)
			if p.calls.Load() > 1 {
				require.Zero(t, time.Since(start), "it waits")
			}
		}
		lookup("a")
		p.say("b", nil)
		time.Sleep(2 * time.Minute)
		lookup("a")
		time.Sleep(2 * time.Second)
		lookup("b")
		require.EqualValues(t, 2, p.calls.Load())
		require.Equal(t, []Move{{At: r.moves[eu][0].At, From: "a", To: "b", By: FromResolver}}, r.moves[eu])
		p.say("", region.ErrUnknownRegion)
		time.Sleep(2 * time.Minute)
		lookup("b")
		time.Sleep(2 * time.Second)
		_, err := r.Lookup(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnknownRegion)
		require.EqualValues(t, 3, p.calls.Load())
	})
}

func TestRefresh(t *testing.T) {
	p := &plane{peer: "a"}
	bubble(t, p, Options{}, func(t *testing.T, d *directory, r *Router) {
		for calls, peer := range []region.PeerName{"a", "b"} {
			p.say(peer, nil)
			route, err := r.Refresh(t.Context(), eu)
			require.NoError(t, err)
			require.Equal(t, peer, route.Peer)
			require.EqualValues(t, calls+1, p.calls.Load())
		}
		p.say("", errDown)
		_, err := r.Refresh(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnavailable)
		route, err := r.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, region.PeerName("b"), route.Peer)
		time.Sleep(failurePause)
		p.say("", region.ErrUnknownRegion)
		_, err = r.Refresh(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnknownRegion)
		d.serve(t, map[region.Key]region.PeerName{eu: "a"})
		route, err = r.Refresh(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, Route{Region: eu, Peer: "a"}, route)
		require.EqualValues(t, 4, p.calls.Load(), "a region in the Directory is not asked about")
	})
}

func TestANonsensicalAnswer(t *testing.T) {
	bubble(t, &plane{peer: "No Peer"}, Options{}, func(t *testing.T, _ *directory, r *Router) {
		_, err := r.Lookup(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.ErrorContains(t, err, "its answer names no peer")
	})
}

func TestAfterTheEndNothingIsAsked(t *testing.T) {
	p := &plane{took: time.Hour}
	bubble(t, p, Options{Timeout: time.Hour}, func(t *testing.T, _ *directory, r *Router) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		go func() { _, _ = r.Lookup(t.Context(), eu) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		require.Zero(t, p.now.Load(), "Start ended before its open question")
		_, err := r.Lookup(t.Context(), region.Key{Provider: "loodse", Name: "us"})
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.Error(t, r.Start(t.Context()))
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]Options{
		"Timeout": {Timeout: -1}, "Fresh": {Fresh: -1}, "Negative": {Negative: -1}, "Burst": {Budget: Budget{Burst: -1}},
	} {
		_, err := New(newDirectory(t), opts)
		require.ErrorContains(t, err, name)
	}
}
