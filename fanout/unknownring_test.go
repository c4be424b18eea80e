// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// No peer identifies itself in time when an operation is submitted, and all do before it commits. Its log entry then
// stores the ring: without it the entry would count as one of the first release, and the log as that of another ring.
func TestAnEntryStoresTheRingThatAnswersLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		before := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, before)
		_, err := before.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
		require.NoError(t, err)
		for _, name := range peers {
			for _, resource := range []schema.GroupResource{{Resource: "namespaces"}, {Group: "fanout.atoll.dev", Resource: "peersets"}} {
				r.Server(name).Inject(regiontest.Fault{Verb: "get", Resource: resource, Do: regiontest.Delay(5 * time.Second)})
			}
		}
		log := waltest.NewMemory()
		var mu sync.Mutex
		var rings []string // of the open entries, at each write to a peer
		step := func(_ context.Context, e fanout.StepEvent) {
			if e.Done || e.Verb != "put" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for entry, err := range log.Open(context.WithoutCancel(t.Context())) {
				require.NoError(t, err)
				about, err := fanout.Describe(entry)
				require.NoError(t, err)
				rings = append(rings, about.Ring)
			}
		}
		c := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: step}})
		_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, rings)
		require.NotContains(t, rings, "")
	})
}
