// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// distances are the durations of one round trip to each peer.
var distances = map[region.PeerName]time.Duration{
	"ap-south": 250 * time.Millisecond,
	"eu-west":  10 * time.Millisecond,
	"us-east":  90 * time.Millisecond,
}

// farAway delays every request to a peer by the peer's round trip.
func farAway(r *regiontest.Ring) {
	for peer, distance := range distances {
		r.Server(peer).Inject(regiontest.Fault{Times: -1, Do: regiontest.Delay(distance)})
	}
}

// rounds are the round trips that make up an operation's cost.
type rounds struct {
	target time.Duration // to the primary's peer
	others time.Duration // to the farthest other peer
	all    time.Duration // to the farthest of all peers
}

func roundsOf(target region.PeerName) rounds {
	r := rounds{target: distances[target]}
	for peer, distance := range distances {
		if peer != target {
			r.others = max(r.others, distance)
		}
	}
	r.all = max(r.target, r.others)
	return r
}

// add returns the cost of an add without the log, in round trips one after another: first the
// create of the primary, then concurrently the creates of the secondaries and the reads in the
// target, then the commit.
func (r rounds) add() time.Duration { return r.target + r.all + r.target }

// addEverywhere returns the cost of an add of a kind that exists everywhere: the activation
// follows the commit.
func (r rounds) addEverywhere() time.Duration { return r.add() + r.others }

// protocolOnly returns the kinds without their hooks, because hooks take further round trips: an
// Account's hooks create a namespace and report it.
func protocolOnly() []fanout.Kind {
	kinds := account.Kinds()
	for i := range kinds {
		kinds[i].Activated, kinds[i].Released = nil, nil
	}
	return kinds
}

// warm makes the coordinator identify its peers and record that they accept guards. A coordinator
// does both only once.
func warm(t testing.TB, c *fanout.Coordinator, namespace string) {
	t.Helper()
	for _, target := range []region.PeerName{"eu-west", "us-east"} { // so that each peer has accepted a guard
		_, err := c.Add(t.Context(), newServiceCluster(namespace, "warm-up"), fanout.AddOptions{Target: target, Durable: true})
		require.NoError(t, err)
		_, err = c.Remove(t.Context(), serviceClusters, key(namespace, "warm-up"), fanout.RemoveOptions{})
		require.NoError(t, err)
	}
}

// TestLegs counts round trips in virtual time, in which nothing else takes time.
func TestLegs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: protocolOnly(), LeaseTimeout: time.Minute})
		warm(t, c, acme)
		farAway(r)
		for _, target := range peers {
			cost := roundsOf(target)
			name := "beta-" + string(target)
			for _, operation := range []struct {
				name string
				want time.Duration
				run  func(context.Context) (*fanout.Operation, error)
			}{
				{"add", cost.add(), func(ctx context.Context) (*fanout.Operation, error) {
					return c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: target})
				}},
				// The object is found, marked, deleted and read; the members are read; each
				// guard is read, then the object once more; each guard is deleted and read; the
				// finalizer is removed.
				{"remove", 7*cost.target + 3*cost.others, func(ctx context.Context) (*fanout.Operation, error) {
					return c.Remove(ctx, serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
				}},
				{"account add", cost.addEverywhere(), func(ctx context.Context) (*fanout.Operation, error) {
					return c.Add(ctx, newAccount(name), fanout.AddOptions{Target: target})
				}},
			} {
				begun := time.Now()
				_, err := operation.run(t.Context())
				require.NoError(t, err)
				require.Equal(t, operation.want, time.Since(begun), "%s in %s", operation.name, target)
				require.NoError(t, c.Wait(t.Context()))
			}
		}
	})
}

// TestLegsWithASharedLog: with a shared log an add makes three more round trips to the log's plane
// before it returns: it lists the open entries, writes its own entry, and then writes into this
// entry that a commit may be sent.
func TestLegsWithASharedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const plane = 40 * time.Millisecond
		r, s := newRing(t), newCentral(t)
		c := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{Kinds: protocolOnly(), LeaseTimeout: time.Minute})
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		warm(t, c, acme)
		farAway(r)
		s.Inject(regiontest.Fault{Times: -1, Do: regiontest.Delay(plane)})
		for _, target := range peers {
			begun := time.Now()
			_, err := c.Add(t.Context(), newServiceCluster(acme, "db-"+string(target)), fanout.AddOptions{Target: target})
			require.NoError(t, err)
			require.Equal(t, roundsOf(target).add()+3*plane, time.Since(begun), "%s", target)
			require.NoError(t, c.Wait(t.Context()))
		}
	})
}

// BenchmarkLatency adds ServiceClusters and Accounts to peers with round trips of 10, 90 and
// 250 ms, with a log in a file. It reports the predicted time of the protocol divided by the
// measured time. The difference to 1 is the work of the coordinator and of the peers in memory.
func BenchmarkLatency(b *testing.B) {
	r := newRing(b)
	acme := addAccount(b, coordinator(b, r, waltest.NewMemory(), fanout.Options{}))
	log, err := wal.Open(b.TempDir()+"/operations.db", wal.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, log.Close()) }()
	c := coordinator(b, r, log, fanout.Options{Kinds: protocolOnly(), LeaseTimeout: time.Minute})
	warm(b, c, acme)
	farAway(r)
	for _, target := range peers {
		cost := roundsOf(target)
		for _, operation := range []struct {
			name string
			want time.Duration
			run  func() error
		}{
			{"add", cost.add(), func() error {
				_, err := c.Add(b.Context(), newServiceCluster(acme, unique("db")), fanout.AddOptions{Target: target})
				return err
			}},
			{"account-add", cost.addEverywhere(), func() error {
				_, err := c.Add(b.Context(), newAccount(unique("beta")), fanout.AddOptions{Target: target})
				return err
			}},
		} {
			b.Run(operation.name+"/target="+distances[target].String(), func(b *testing.B) {
				for b.Loop() {
					require.NoError(b, operation.run())
				}
				b.ReportMetric(operation.want.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "ratio")
			})
		}
	}
}
