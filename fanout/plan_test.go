// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// planWritesNothing runs a plan and fails the test if a request other than a read or a dry run
// reached a peer, or if the log was written.
func planWritesNothing(t *testing.T, r *regiontest.Ring, obj fanout.Object, opts fanout.AddOptions) (*fanout.Plan, error) {
	t.Helper()
	before := map[region.PeerName]int{}
	for _, p := range peers {
		before[p] = len(r.Server(p).Requests())
	}
	log := waltest.NewMemory()
	plan, err := coordinator(t, r, log, fanout.Options{}).Plan(t.Context(), obj, opts)
	requireSettled(t, log)
	for _, p := range peers {
		for _, request := range r.Server(p).Requests()[before[p]:] {
			require.True(t, request.Method == http.MethodGet || request.DryRun, "%s %s in %s", request.Method, request.Path, p)
		}
	}
	return plan, err
}

func states(results region.Results[fanout.PeerState]) map[region.PeerName]fanout.PeerState {
	all := map[region.PeerName]fanout.PeerState{}
	for o := range results.All() {
		all[o.Peer] = o.Value
	}
	return all
}

func refusals(results region.Results[fanout.PeerState]) (names []region.PeerName) {
	for o := range results.All() {
		if o.Err != nil {
			names = append(names, o.Peer)
		}
	}
	return names
}

func TestPlanOfWhatWouldBeCommitted(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)

	plan, err := planWritesNothing(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, plan.State)
	require.False(t, plan.AlreadyDone)
	require.EqualValues(t, "eu-west", plan.Primary)
	require.Equal(t, map[region.PeerName]fanout.PeerState{
		"ap-south": fanout.PeerGuard, "eu-west": fanout.PeerPrimary, "us-east": fanout.PeerGuard,
	}, states(plan.Peers))
	require.NoError(t, plan.Peers.Err())
	require.Empty(t, plan.Leftovers)

	plan, err = planWritesNothing(t, r, newAccount(unique("acme")), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.Equal(t, fanout.PeerReplica, states(plan.Peers)["ap-south"])

	plan, err = planWritesNothing(t, r, newAccount(acme), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.True(t, plan.AlreadyDone, "the same content is there")
	require.EqualValues(t, "ap-south", plan.Primary, "where it is")
	require.Zero(t, plan.Latency)
	same, err := c.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.Equal(t, states(plan.Peers), states(same.Peers))
	require.Equal(t, plan.Primary, same.Primary)
	requireClean(t, c)
}

// For an add that would be refused, Plan returns an error like that of Add, and a Plan with a
// result for every peer.
func TestPlanOfWhatWouldBeRefused(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	_, err = clusters(t, r, "ap-south", acme).Create(t.Context(), newServiceCluster(acme, "applied"), metav1.CreateOptions{})
	require.NoError(t, err)

	for name, tc := range map[string]struct {
		obj     fanout.Object
		prepare func()
		check   func(t *testing.T, err error)
		refused []region.PeerName
	}{
		"committed elsewhere": {
			obj: newServiceCluster(acme, "db"),
			check: func(t *testing.T, err error) {
				t.Helper()
				held, ok := errors.AsType[*fanout.HeldError](err)
				require.True(t, ok, "%v", err)
				require.EqualValues(t, "us-east", held.Holder)
				require.Equal(t, op.ID, held.Operation)
				require.Equal(t, "Configured", held.Stage)
				require.False(t, held.Since.IsZero())
			},
			refused: []region.PeerName{"us-east"},
		},
		"a person's": {
			obj: newServiceCluster(acme, "applied"),
			check: func(t *testing.T, err error) {
				t.Helper()
				held, ok := errors.AsType[*fanout.HeldError](err)
				require.True(t, ok, "%v", err)
				require.EqualValues(t, "ap-south", held.Holder)
				require.Empty(t, held.Operation)
			},
			refused: []region.PeerName{"ap-south"},
		},
		"no owner": {
			obj: newServiceCluster("nobody", "db"),
			check: func(t *testing.T, err error) {
				t.Helper()
				require.ErrorIs(t, err, fanout.ErrNoOwner)
				require.ErrorIs(t, err, fanout.ErrAborted)
			},
			refused: []region.PeerName{"ap-south", "eu-west", "us-east"},
		},
		"rights missing in two peers": {
			obj: newServiceCluster(acme, "db-2"),
			prepare: func() {
				for _, p := range []region.PeerName{"ap-south", "us-east"} {
					r.Server(p).Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
				}
			},
			check: func(t *testing.T, err error) {
				t.Helper()
				require.ErrorIs(t, err, fanout.ErrAborted)
				require.True(t, apierrors.IsForbidden(err), "%v", err)
			},
			refused: []region.PeerName{"ap-south", "us-east"},
		},
		"refused in the target, the others are asked all the same": {
			obj: newServiceCluster(acme, "db-2"),
			prepare: func() {
				for _, p := range []region.PeerName{"ap-south", "eu-west"} {
					r.Server(p).Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
				}
			},
			check: func(t *testing.T, err error) {
				t.Helper()
				require.ErrorIs(t, err, fanout.ErrAborted)
			},
			refused: []region.PeerName{"ap-south", "eu-west"},
		},
		"a peer does not answer": {
			obj:     newServiceCluster(acme, "db-2"),
			prepare: func() { r.Partition("us-east", true) },
			check: func(t *testing.T, err error) {
				t.Helper()
				require.ErrorIs(t, err, fanout.ErrAborted)
				require.ErrorIs(t, err, region.ErrUnavailable)
			},
			refused: []region.PeerName{"us-east"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.prepare != nil {
				tc.prepare()
				defer func() {
					r.Partition("us-east", false)
					for _, p := range peers {
						r.Server(p).Reset()
					}
				}()
			}
			plan, err := planWritesNothing(t, r, tc.obj, fanout.AddOptions{Target: "eu-west"})
			tc.check(t, err)
			require.Equal(t, fanout.Aborted, plan.State)
			require.Equal(t, tc.refused, refusals(plan.Peers))
			require.Zero(t, plan.Latency)
			for _, state := range states(plan.Peers) {
				require.Equal(t, fanout.PeerUnchanged, state)
			}
		})
	}
}

// A dead reservation does not make a plan fail, because Add would delete the reservation.
func TestPlanSeesThroughDeadReservations(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	r.Partition("ap-south", true)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	r.Partition("ap-south", false)

	plan, err := planWritesNothing(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, plan.State)
	require.Equal(t, map[region.PeerName]string{"ap-south": op.ID}, plan.Leftovers)
}

// Plan reports the reservation of a live rival at once, with the peer that holds it.
func TestPlanDoesNotWaitForRivals(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	reserve(t, r, acme, "db", "us-east", "rival/1")
	plan, err := planWritesNothing(t, r, newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "Reserved", held.Stage)
	require.Equal(t, []region.PeerName{"us-east"}, refusals(plan.Peers))
}

func TestPlanKnowsTheIdempotencyKey(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	opts := fanout.AddOptions{Target: "us-east", IdempotencyKey: "request-1"}
	plan, err := c.Plan(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.False(t, plan.AlreadyDone)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	plan, err = c.Plan(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.True(t, plan.AlreadyDone)
	_, err = c.Plan(t.Context(), newServiceCluster(acme, "other"), opts)
	require.ErrorContains(t, err, "idempotency key")

	_, err = c.Plan(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{})
	require.ErrorContains(t, err, "AddOptions.Target")
	_, err = c.Plan(t.Context(), nil, opts)
	require.ErrorContains(t, err, "object is nil")
}

// In virtual time only the delayed requests take time. There an add takes as long as its plan
// predicts.
func TestPlanPredictsTheLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
		kinds := []fanout.Kind{fanout.ServiceClusters(), {
			Resource: fanout.ServiceClusters().Within, Kind: "Account", Mode: fanout.Everywhere,
		}}
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: kinds, LeaseTimeout: time.Minute})
		for i, p := range peers {
			r.Server(p).Inject(regiontest.Fault{Times: -1, Do: regiontest.Delay(time.Duration(i+1) * 40 * time.Millisecond)})
		}
		for _, target := range peers {
			for _, obj := range []fanout.Object{newServiceCluster(acme, "db-"+string(target)), newAccount("beta-" + string(target))} {
				opts := fanout.AddOptions{Target: target}
				plan, err := c.Plan(t.Context(), obj, opts)
				require.NoError(t, err)
				begun := time.Now()
				_, err = c.Add(t.Context(), obj, opts)
				require.NoError(t, err)
				require.Equal(t, time.Since(begun), plan.Latency, "%T in %s", obj, target)
			}
		}
	})
}

// TestPlanWithASharedLog: a plan does not write to a central log, and predicts an add's result.
func TestPlanWithASharedLog(t *testing.T) {
	t.Parallel()
	r, s := newRing(t), newCentral(t)
	c := coordinator(t, r, sharedLog(t, s, &line{}), fanout.Options{})
	acme := addAccount(t, c)
	before := len(s.Requests())
	plan, err := c.Plan(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, plan.State)
	for _, request := range s.Requests()[before:] {
		require.Contains(t, []string{"get", "list"}, request.Verb)
	}
}
