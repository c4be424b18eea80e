// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// TestAReservationInAPeerThatHasLeft runs an add by a coordinator that still has a departed peer
// configured. It kills the process after the add has reserved the name in that peer, and before
// the add has read the members. A recovery without the peer in its configuration reports that a
// reservation may be left, and keeps the entry. A recovery with the peer, a sweep, or the peer's
// next join deletes the reservation.
func TestAReservationInAPeerThatHasLeft(t *testing.T) {
	r := servers(t, four...)
	members := []region.PeerName{"ap-south", "eu-west", "us-east"}
	all, three := of(t, r, four...), of(t, r, members...)
	acme := addAccount(t, all)
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, log *waltest.Memory)
	}{
		{"recover", func(t *testing.T, log *waltest.Memory) {
			t.Helper()
			c := coordinator(t, some(t, r, four...), log, fanout.Options{MaxInFlight: time.Nanosecond})
			_, err := c.Recover(t.Context())
			require.NoError(t, err)
			requireSettled(t, log)
		}},
		{"sweep", func(t *testing.T, _ *waltest.Memory) {
			t.Helper()
			_, err := all.Sweep(t.Context())
			require.NoError(t, err)
		}},
		{"join", func(t *testing.T, _ *waltest.Memory) {
			t.Helper()
			_, err := all.Join(t.Context(), "sa-east")
			require.NoError(t, err)
			requireClean(t, all)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := all.Leave(t.Context(), "sa-east")
			require.NoError(t, err)
			name := unique("db")
			log := dieBesideDeparted(t, r, newServiceCluster(acme, name))
			operations, err := coordinator(t, some(t, r, members...), log, fanout.Options{}).Recover(t.Context())
			require.NoError(t, err)
			requireClean(t, three)
			require.True(t, holds(t, r, "sa-east", acme, name))
			require.Len(t, operations, 1)
			require.Equal(t, fanout.Aborted, operations[0].State)
			require.Equal(t, map[region.PeerName]fanout.PeerState{
				"ap-south": fanout.PeerUnchanged, "eu-west": fanout.PeerUnchanged, "sa-east": fanout.PeerPending, "us-east": fanout.PeerUnchanged,
			}, states(operations[0].Peers))
			require.ErrorContains(t, operations[0].Peers.Err(), "peer sa-east: connect: unknown peer")
			tc.end(t, log)
			require.False(t, holds(t, r, "sa-east", acme, name))
		})
	}
}

// TestAGuardForAPeerThatHasLeftMeanwhile lets an add read the members, and lets a peer accept the
// guard only after that peer has left. The add is committed with the members that it read. The
// guard stays in the peer and does no harm: if the peer joins again, the guard is valid, and if
// the object was removed meanwhile, the guard is dead.
func TestAGuardForAPeerThatHasLeftMeanwhile(t *testing.T) {
	r := servers(t, four...)
	all, three := of(t, r, four...), of(t, r, "ap-south", "eu-west", "us-east")
	acme := addAccount(t, all)
	for _, removed := range []bool{false, true} {
		read, left := make(chan region.PeerName, len(four)), make(chan struct{})
		slow := coordinator(t, some(t, r, four...), waltest.NewMemory(), fanout.Options{
			LeaseTimeout: time.Minute, // long enough that no other coordinator takes the add for dead
			Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
				switch {
				case e.Verb == "read-peerset" && e.Done:
					read <- e.Peer
				case e.Verb == "create" && e.Peer == "sa-east" && !e.Done:
					<-left
				}
			}},
		})
		name := unique("db")
		returned := make(chan error, 1)
		go func() {
			_, err := slow.Add(t.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east", Durable: true})
			returned <- err
		}()
		for range four {
			<-read
		}
		_, err := all.Leave(t.Context(), "sa-east")
		require.NoError(t, err)
		close(left)
		require.NoError(t, <-returned)
		require.True(t, holds(t, r, "sa-east", acme, name))
		requireClean(t, three)
		if removed {
			_, err = three.Remove(t.Context(), serviceClusters, key(acme, name), fanout.RemoveOptions{})
			require.NoError(t, err)
			require.True(t, holds(t, r, "sa-east", acme, name), "a removal asks the members")
		}
		_, err = all.Join(t.Context(), "sa-east")
		require.NoError(t, err)
		require.Equal(t, !removed, holds(t, r, "sa-east", acme, name))
		requireClean(t, all)
	}
}

// TestAJoinGuardsWhatComesToNothing runs an add by a coordinator that does not have a certain peer
// configured. That peer joins after the add's reservation, and before the add reads the members.
// The join guards the reserved name. The add is refused and cannot delete that guard. The guard is
// dead, and a sweep deletes it.
func TestAJoinGuardsWhatComesToNothing(t *testing.T) {
	r := servers(t, "ap-south", "eu-west", "us-east")
	all, three := of(t, r, four...), of(t, r, "ap-south", "eu-west", "us-east")
	acme := addAccount(t, three)
	reads, joined := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow := coordinator(t, some(t, r, "ap-south", "eu-west", "us-east"), waltest.NewMemory(), fanout.Options{
		LeaseTimeout: time.Minute, // long enough that no other coordinator takes the add for dead
		Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
			if e.Verb == "read-peerset" && !e.Done {
				once.Do(func() { close(reads) })
				<-joined
			}
		}},
	})
	returned := make(chan error, 1)
	go func() {
		_, err := slow.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		returned <- err
	}()
	<-reads
	_, err := all.Join(t.Context(), "sa-east")
	require.NoError(t, err)
	require.True(t, holds(t, r, "sa-east", acme, "db"), "a reserved name is guarded in a newcomer")
	close(joined)
	err = <-returned
	require.ErrorIs(t, err, fanout.ErrMembership)
	require.ErrorContains(t, err, "sa-east is a member and not configured")

	report, err := all.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, report.Violations, 1)
	require.Equal(t, "I6", report.Violations[0].Invariant)
	require.EqualValues(t, "sa-east", report.Violations[0].Peer)
	_, err = all.Sweep(t.Context())
	require.NoError(t, err)
	require.False(t, holds(t, r, "sa-east", acme, "db"))
	requireClean(t, all)
}

// dieBesideDeparted adds obj with all four peers configured, of which sa-east is no member, and
// kills the process when sa-east has accepted the reservation. It returns the log.
func dieBesideDeparted(t *testing.T, r *regiontest.Ring, obj *unstructured.Unstructured) *waltest.Memory {
	t.Helper()
	log := waltest.NewMemory()
	stop := newCrash(0, true)
	stop.of = func(e fanout.StepEvent) bool { return e.Verb == "create" && e.Peer == "sa-east" }
	doomed := coordinator(t, some(t, r, four...), log, fanout.Options{
		Observer: &fanout.Observer{Step: stop.step},
		Cleanup:  time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() {
		_, err := doomed.Add(ctx, obj, fanout.AddOptions{Target: "us-east"})
		returned <- err
	}()
	<-stop.stopped
	next := log.Reopen()
	// The dead process must not act any longer: its calls end with its context.
	for _, peer := range four {
		r.Partition(peer, true)
	}
	cancel()
	close(stop.release)
	require.Error(t, <-returned)
	for _, peer := range four {
		r.Partition(peer, false)
	}
	return next
}

// holds reports whether peer holds a ServiceCluster called name.
func holds(t *testing.T, r *regiontest.Ring, peer region.PeerName, namespace, name string) bool {
	t.Helper()
	_, err := clustersIn(t, r, peer, namespace).Get(t.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}
