// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/kubelog"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var operations = sync.OnceValues(func() (*regiontest.Definitions, error) {
	crd, err := config.CRD("operations.fanout.atoll.dev")
	if err != nil {
		return nil, err
	}
	return regiontest.Compile(crd)
})

// newCentral makes a central plane for logs.
func newCentral(t testing.TB) *regiontest.Server {
	t.Helper()
	types, err := operations()
	require.NoError(t, err)
	s := regiontest.NewServer(regiontest.Options{Name: "central", Definitions: types})
	t.Cleanup(s.Close)
	return s
}

// line is a program's connection to the central plane.
type line struct{ cut atomic.Bool }

type lineTransport struct {
	*line
	to http.RoundTripper
}

func (l lineTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		// Refused, so that nothing is tried again: the process is dead.
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
	return l.to.RoundTrip(r)
}

func sharedLog(t testing.TB, s *regiontest.Server, l *line) *kubelog.Log {
	t.Helper()
	c := s.Config()
	c.Wrap(func(to http.RoundTripper) http.RoundTripper { return lineTransport{l, to} })
	api, err := region.APIFor(c)
	require.NoError(t, err)
	log, err := kubelog.New(api, kubelog.Options{Timeout: time.Minute})
	require.NoError(t, err)
	return log
}

func TestCentralOperations(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	log := sharedLog(t, s, &line{})
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	again, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", IdempotencyKey: "k"})
	require.NoError(t, err)
	require.Equal(t, op.ID, again.ID)
	requireClean(t, c)
	requireSettled(t, log)

	// A coordinator without the central log reads what was committed, too.
	alone := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	requireClean(t, alone)
	_, err = alone.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, "us-east", held.Holder)

	_, err = c.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
	require.NoError(t, err)
	requireClean(t, c)
	requireSettled(t, log)
}

// TestCentralRivals: of adds of one name at the same time, by coordinators that
// share a log and by one that does not, one is committed.
func TestCentralRivals(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	var all []*fanout.Coordinator
	for range 3 {
		// A lease in which whoever is alive shows it.
		all = append(all, coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{LeaseTimeout: 5 * time.Second}))
	}
	acme := addAccount(t, all[0])
	for range 5 {
		name := unique("db")
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() {
				_, errs[i] = c.Add(within(t, time.Minute), newServiceCluster(acme, name), fanout.AddOptions{Target: peers[i]})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			_, held := errors.AsType[*fanout.HeldError](err)
			require.True(t, held, "%v", err)
		}
		require.Equal(t, 1, won, "%v", errs)
	}
	requireClean(t, all[0])
}

// TestCentralCrashAtEveryCommand stops a coordinator before and after each of
// its commands; another one, which shares its log and never saw its process,
// adopts what it left, and all invariants hold with nothing under way.
func TestCentralCrashAtEveryCommand(t *testing.T) {
	for _, tc := range crashCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, s := distant(newRing(t)), newCentral(t)
				acme := addAccount(t, coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{}))
				for _, after := range []bool{false, true} {
					at := 0
					for ; centralCrashOnce(t, r, s, acme, tc, at, after); at += stride() {
					}
					require.Greater(t, at, 8, "an operation has more commands than that")
				}
			})
		})
	}
}

func centralCrashOnce(t *testing.T, r *regiontest.Ring, s *regiontest.Server, acme string, tc crashCase, at int, after bool) bool {
	t.Helper()
	key := tc.prepare(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}), acme)
	defer tidy(t, r, key)
	stop, own := newCrash(at, after), &line{}
	doomed := coordinator(t, r, sharedLog(t, s, own), fanout.Options{
		Observer: &fanout.Observer{Step: stop.step},
		Cleanup:  time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- tc.run(ctx, doomed, key) }()
	select {
	case err := <-returned:
		cancel()
		require.NoError(t, err)
		return false
	case <-stop.stopped:
	}
	own.cut.Store(true)
	time.Sleep(time.Millisecond) // virtual time: longer than anything is in flight
	log := sharedLog(t, s, &line{})
	successor := coordinator(t, r, log, fanout.Options{MaxInFlight: time.Nanosecond})
	require.Eventually(t, func() bool {
		_, err := successor.Recover(t.Context())
		require.NoError(t, err, "command %d", at)
		for _, err := range log.Open(t.Context()) {
			require.NoError(t, err)
			return false
		}
		return true
	}, time.Minute, time.Millisecond, "command %d", at)
	requireClean(t, successor)

	heal := cut(r)
	cancel()
	close(stop.release)
	t.Logf("the dead process would have said: %v", <-returned)
	heal()
	return true
}

// TestCentralLeavesTheLiving: an operation that another coordinator works on is
// not settled by those who share its log.
func TestCentralLeavesTheLiving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, s := newRing(t), newCentral(t)
		slow := make(chan struct{})
		var once sync.Once
		reached := make(chan struct{})
		working := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{
			LeaseTimeout: 400 * time.Millisecond,
			Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
				if e.Verb == "decide" && !e.Done {
					once.Do(func() { close(reached) })
					<-slow
				}
			}},
		})
		other := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{LeaseTimeout: 400 * time.Millisecond, CallTimeout: time.Second})
		name, done := unique("acme"), make(chan error, 1)
		go func() {
			_, err := working.Add(t.Context(), newAccount(name), fanout.AddOptions{})
			done <- err
		}()
		<-reached
		ops, err := other.Recover(t.Context())
		require.NoError(t, err)
		require.Empty(t, ops)
		_, _ = other.Sweep(t.Context()) // it watches for a lease
		close(slow)
		require.NoError(t, <-done)
		requireClean(t, other)
	})
}

// TestCentralAbortOfAnothers: what another coordinator works on is taken back
// only by who asks for that, and at once then.
func TestCentralAbortOfAnothers(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	slow, reached := make(chan struct{}), make(chan string, 1)
	var once sync.Once
	working := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{
		Identity: "them/1", LeaseTimeout: time.Hour, // its signs of life do not come between
		Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Verb == "decide" && !e.Done {
				once.Do(func() {
					reached <- e.Operation
					<-slow
				})
			}
		}},
	})
	// A lease that does not run out in a test: nothing waits for it.
	other := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{Identity: "me/1", LeaseTimeout: time.Hour})
	acme := addAccount(t, other)
	done := make(chan error, 1)
	go func() {
		_, err := working.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		done <- err
	}()
	id := <-reached
	_, err := other.Abort(t.Context(), id, fanout.AbortOptions{})
	foreign, ok := errors.AsType[*fanout.ForeignError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "them/1", foreign.Coordinator)
	require.EqualValues(t, "us-east", foreign.Holder)
	require.WithinDuration(t, time.Now(), foreign.Since, time.Minute)
	op, err := other.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
	require.ErrorIs(t, err, fanout.ErrEnded, "what the other one sent is not known here")
	require.Equal(t, fanout.Ended, op.State)
	close(slow)
	err = <-done
	require.Error(t, err)
	t.Logf("the other one says: %v", err)
	requireClean(t, other)
}

// TestCentralPausedHolder: who stood still while another coordinator took the
// entry over writes nothing into it any more, however the record stands.
func TestCentralPausedHolder(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	hold := func(verb string) (*fanout.Observer, <-chan string, chan struct{}) {
		var once sync.Once
		reached, release := make(chan string, 1), make(chan struct{})
		return &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Verb == verb && !e.Done {
				once.Do(func() {
					reached <- e.Operation
					<-release
				})
			}
		}}, reached, release
	}
	deciding, decides, decide := hold("decide")
	withdrawing, withdraws, withdraw := hold("withdraw")
	log := sharedLog(t, s, &line{})
	paused := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{Identity: "them/1", LeaseTimeout: time.Hour, Observer: deciding})
	adopter := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{Identity: "me/1", LeaseTimeout: time.Hour, Observer: withdrawing})
	acme := addAccount(t, coordinator(t, r, log, fanout.Options{}))
	added, aborted := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := paused.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		added <- err
	}()
	id := <-decides
	go func() {
		_, err := adopter.Abort(t.Context(), id, fanout.AbortOptions{Others: true})
		aborted <- err
	}()
	<-withdraws
	taken, err := log.Decision(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, taken.Owner, "me/1")

	close(decide)
	require.ErrorIs(t, <-added, fanout.ErrAborted)
	now, err := log.Decision(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, taken, now, "nobody but who took it over writes it")
	close(withdraw)
	require.ErrorIs(t, <-aborted, fanout.ErrEnded)
	requireClean(t, adopter)
	requireSettled(t, log)
}
