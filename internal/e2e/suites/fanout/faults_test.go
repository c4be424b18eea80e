// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
)

// own starts three planes for one test, which stops and freezes them.
func own(t *testing.T) []*plane.Plane {
	t.Helper()
	var options []plane.Options
	for _, name := range plane.Names(3) {
		options = append(options, plane.Options{Name: name})
	}
	return planetest.NewAll(t, options...)
}

func addAccount(t *testing.T, c *fanout.Coordinator) string {
	t.Helper()
	name := unique("acme")
	op, err := c.Add(within(t, time.Minute), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
	return name
}

func TestOnePeerDown(t *testing.T) {
	t.Parallel()
	r := newRing(t, own(t))
	down := r.planes[0]
	// If the server is killed, the outcome of a write may be unknown, but the server cannot apply
	// the write later. So operations need not wait for late requests.
	c, log := r.coordinator(t, fanout.Options{LeaseTimeout: time.Second, MaxInFlight: time.Nanosecond})
	acme := addAccount(t, c)
	_, err := c.Add(within(t, time.Minute), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	lasting := addAccount(t, c)

	require.NoError(t, down.Kill(t.Context()))
	_, err = c.Add(within(t, time.Minute), newServiceCluster(acme, "other"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorContains(t, err, down.Name())
	op, err := c.Remove(within(t, time.Minute), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State, "the guard in the dead peer is not yet gone")
	op, err = c.Remove(within(t, time.Minute), accounts, key("", acme), fanout.RemoveOptions{Unreachable: fanout.Forward})
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, op.State, "the tombstone stays until every peer has confirmed")

	// A waiting add proceeds once the peer is back, although a starting server may answer 403 at
	// first.
	waited := make(chan error, 1)
	go func() {
		_, err := c.Add(within(t, 2*time.Minute), newServiceCluster(lasting, "patient"), fanout.AddOptions{Target: "us-east", Unreachable: fanout.Wait})
		waited <- err
	}()
	require.NoError(t, down.Restart(t.Context()))
	require.NoError(t, <-waited)
	planetest.Eventually(t, time.Minute, "recovery", func(ctx context.Context) error {
		if _, err := c.Recover(ctx); err != nil {
			return err
		}
		for e, err := range log.Open(ctx) {
			return errors.Join(err, fmt.Errorf("operation %s is open: %s", e.ID, e.State))
		}
		return nil
	})
	r.audited(t, c)
}

// If the target of an add freezes, the outcome of the add is unknown at first. The outcome is
// determined when the peer responds again.
func TestOneSlowPeer(t *testing.T) {
	t.Parallel()
	r := newRing(t, own(t))
	frozen := r.planes[1]
	c, _ := r.coordinator(t, fanout.Options{LeaseTimeout: 2 * time.Second})
	acme := addAccount(t, c)

	ctx, end := context.WithCancel(within(t, time.Minute))
	defer end()
	var once sync.Once
	freezing, _ := r.coordinator(t, fanout.Options{
		LeaseTimeout: 2 * time.Second,
		CallTimeout:  5 * time.Second,
		Cleanup:      3 * time.Second,
		Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if !e.Done && e.Verb == "put" && e.Stage == "Configured" {
				once.Do(func() {
					require.NoError(t, frozen.Pause(t.Context()))
					time.AfterFunc(2*time.Second, end) // the caller stops waiting
				})
			}
		}},
	})
	_, err := freezing.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: region.PeerName(frozen.Name())})
	inDoubt, ok := errors.AsType[*fanout.InDoubtError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []region.PeerName{region.PeerName(frozen.Name())}, inDoubt.Peers)

	require.NoError(t, frozen.Resume(t.Context()))
	planetest.Eventually(t, time.Minute, "the outcome", func(ctx context.Context) error {
		_, err := freezing.Outcome(ctx, inDoubt.Operation)
		if errors.Is(err, fanout.ErrAborted) || errors.Is(err, fanout.ErrEnded) {
			return nil
		}
		return err
	})
	_, err = c.Audit(within(t, time.Minute), true)
	require.NoError(t, err)
	r.audited(t, c)
}

func TestConfiguredPeersThatDiffer(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	c, _ := r.coordinator(t, fanout.Options{})
	acme := addAccount(t, c)
	fewer, _ := r.on(r.byName["us-east"], r.byName["eu-west"]).coordinator(t, fanout.Options{})
	_, err := fewer.Add(within(t, time.Minute), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorContains(t, err, "ap-south is a member and not configured")

	creds, err := region.ParseKubeconfig(r.kubeconfigs["us-east"], region.Trust{})
	require.NoError(t, err)
	twin, err := region.NewConn(region.Peer{Name: "us-east-2", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	twice, _ := r.on(r.byName["us-east"], twin).coordinator(t, fanout.Options{})
	_, err = twice.Add(within(t, time.Minute), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, region.ErrSameCluster)
	r.audited(t, c)
}

func TestRightsMissingInOnePeer(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	c, _ := r.coordinator(t, fanout.Options{})
	acme := addAccount(t, c)
	role := rights.Coordinate()
	for i := range role.Rules {
		if role.Rules[i].Resources[0] == "serviceclusters" {
			role.Rules[i].Verbs = []string{"get", "list"}
		}
	}
	manifest, err := yaml.Marshal(role)
	require.NoError(t, err)
	poor := r.planes[2]
	kubeconfig, err := poor.RunAs(t.Context(), manifest)
	require.NoError(t, err)
	restricted, log := r.on(r.byName["eu-west"], r.byName["us-east"], connect(t, poor, kubeconfig)).coordinator(t, fanout.Options{})
	_, err = restricted.Add(within(t, time.Minute), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, poor.Name())
	require.ErrorContains(t, err, "atollctl rbac")
	for e, err := range log.Open(t.Context()) {
		require.NoError(t, err)
		t.Fatalf("operation %s is open", e.ID)
	}
	r.audited(t, c)
}

// Several coordinators add the same name concurrently. One add succeeds, and each of the other adds
// returns a HeldError.
func TestRivals(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	c, _ := r.coordinator(t, fanout.Options{})
	acme := addAccount(t, c)
	targets := []region.PeerName{"eu-west", "us-east", "ap-south", "eu-west", "us-east", "ap-south"}
	for range 5 {
		name := unique("db")
		errs := make([]error, len(targets))
		var wg sync.WaitGroup
		for i, target := range targets {
			rival, _ := r.coordinator(t, fanout.Options{})
			wg.Go(func() {
				_, errs[i] = rival.Add(within(t, time.Minute), newServiceCluster(acme, name), fanout.AddOptions{Target: target})
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
		require.Equal(t, 1, won)
		r.audited(t, c)
	}
}
