// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// If nothing differs, two Replicators, two Controllers, a Catalog and the coordinator's sweeps
// write nothing to any server for an hour, in which watches are also renewed.
func TestSteadyStateMakesNoWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		serve(t, w.ring)
		second, err := NewReplicator(w.api, w.ring, slow(t, w.ring), Options{RemovalCap: noCap})
		require.NoError(t, err)
		run(t, second.Start)
		control(t, w.ring, ControllerOptions{})
		control(t, w.ring, ControllerOptions{})
		catalog, err := NewCatalog(w.conn("eu-west"), w.ring, CatalogOptions{})
		require.NoError(t, err)
		run(t, catalog.Start)
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		w.create(newAccount("loodse", []any{"Provider"}, alice))
		time.Sleep(time.Minute)
		for _, name := range []string{"acme", "loodse"} {
			require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.api, name).Status.Phase)
		}
		require.Len(t, published(t, w.conn("eu-west"), "acme"), 3)

		for _, s := range w.servers() {
			s.Reset()
		}
		time.Sleep(time.Hour)
		for _, s := range w.servers() {
			for _, r := range s.Requests() {
				require.Contains(t, []string{"get", "list", "watch"}, r.Verb, r.Path)
			}
		}
	})
}

// The status is written when a peer becomes unreachable and when it is reachable again, and not
// between.
func TestSilenceIsWrittenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSlowWorld(t, Options{})
		w.create(newAccount("acme", []any{"Tenant"}, alice))
		time.Sleep(time.Minute)
		require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.api, "acme").Status.Phase)
		w.ring.Partition(w.away("acme"), true)
		time.Sleep(time.Minute)
		require.Equal(t, v1alpha1.AccountUnready, accountIn(t, w.api, "acme").Status.Phase)
		w.plane.Reset()
		time.Sleep(10 * time.Minute)
		require.Zero(t, writesTo(w.plane))
		w.ring.Partition(region.PeerName(accountIn(t, w.api, "acme").Status.Peers.Unknown[0]), false)
		time.Sleep(time.Minute)
		require.Equal(t, v1alpha1.AccountReady, accountIn(t, w.api, "acme").Status.Phase)
	})
}
