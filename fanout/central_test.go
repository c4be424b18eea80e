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

// newCentral returns a central plane for logs.
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
		// A 403 keeps the dead process from trying again.
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

func TestSharedLogOperations(t *testing.T) {
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

	// A coordinator without the central log reads committed objects, too.
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

// TestSharedLogRivals lets three coordinators that share a log, and one that has a log of its own,
// add one name concurrently. Exactly one add is committed.
func TestSharedLogRivals(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	var all []*fanout.Coordinator
	for range 3 {
		// The lease is long enough for the coordinators to show signs of life.
		all = append(all, coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{LeaseTimeout: 5 * time.Second}))
	}
	all = append(all, coordinator(t, r, waltest.NewMemory(), fanout.Options{LeaseTimeout: 5 * time.Second}))
	acme := addAccount(t, all[0])
	for range 5 {
		name := unique("db")
		errs := make([]error, len(all))
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() {
				_, errs[i] = c.Add(within(t, time.Minute), newServiceCluster(acme, name), fanout.AddOptions{Target: peers[i%len(peers)], Durable: true})
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

// TestSharedLogCrashAtEveryCommand stops a coordinator at each of its commands, once before and
// once after the command. With -short it leaves commands out (see stride). Another coordinator,
// which shares the log, takes the operation over. Then an audit finds no violation and no work in
// progress.
func TestSharedLogCrashAtEveryCommand(t *testing.T) {
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
	time.Sleep(time.Millisecond) // virtual time: longer than the successor's MaxInFlight
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
