// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// TestObservers calls each func of each Observer, and compares the metrics with testdata/NAME.txt. ATOLL_GOLDEN=write
// writes these files.
func TestObservers(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, registry := newMetrics(t, Options{})
				require.Empty(t, exposition(t, registry), "metrics of an Observer that is not used")
				calls := c.fire(t, m, false)
				for name, n := range calls {
					require.Positive(t, n, "the next Observer's %s was not called", name)
				}
				got := exposition(t, registry)
				problems, err := testutil.GatherAndLint(registry)
				require.NoError(t, err)
				require.Empty(t, problems)
				require.NotContains(t, got, "secret", "a name, an operation or the text of an error is a label value")

				file := filepath.Join("testdata", c.name+".txt")
				if os.Getenv("ATOLL_GOLDEN") == "write" {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, string(want), got)

				alone, registry := newMetrics(t, Options{})
				c.fire(t, alone, true)
				require.Equal(t, string(want), exposition(t, registry), "without a next Observer")
			})
		})
	}
}

// The registry of all Observers together has neither two descriptions of one name nor a name that promlint rejects.
func TestAllObserversTogether(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	m, registry := newMetrics(t, Options{Directory: func() region.Directory { return ring }})
	for _, c := range cases() {
		c.fire(t, m, true)
	}
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	for line := range strings.Lines(exposition(t, registry)) {
		if !strings.HasPrefix(line, "#") {
			require.True(t, strings.HasPrefix(line, "atoll_"), line)
		}
	}
}

// Both Observers get the calls to a peer, and the request has the context of the next one.
func TestCallsAreChained(t *testing.T) {
	type key struct{}
	var status int
	m, registry := newMetrics(t, Options{})
	o := m.Region(&region.Observer{Call: func(ctx context.Context, _ region.CallEvent) (context.Context, func(int, error)) {
		return context.WithValue(ctx, key{}, "trace"), func(s int, _ error) { status = s }
	}})
	ctx, done := o.Call(t.Context(), region.CallEvent{Peer: "eu", Method: "GET"})
	require.Equal(t, "trace", ctx.Value(key{}))
	done(200, nil)
	require.Equal(t, 200, status)
	require.Contains(t, exposition(t, registry), `atoll_peer_request_seconds_count{code="200",method="GET",peer="eu"} 1`)
}

// Observers are called from many goroutines while metrics are collected. The race detector checks this test.
func TestObserversAreConcurrent(t *testing.T) {
	m, registry := newMetrics(t, Options{})
	var running sync.WaitGroup
	for range 4 {
		for _, c := range cases() {
			running.Go(func() { c.fire(t, m, true) })
		}
		running.Go(func() {
			_, err := registry.Gather()
			assert.NoError(t, err)
		})
	}
	running.Wait()
	require.Equal(t, 4, value(m.splitter.faults))
}
