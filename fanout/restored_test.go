// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// atWork runs Start of c until the test ends. Start notes each PeerSet's epoch in the PeerSets of
// the other members.
func atWork(t *testing.T, c *fanout.Coordinator) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Start(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// forgetful returns a ring whose us-east was restored from a state before the adds of "db" and
// "new", before an update of the Account "grown" and before the removals of "gone" and "old".
func forgetful(t *testing.T) (*regiontest.Ring, *fanout.Coordinator, string) {
	t.Helper()
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	at := fanout.AddOptions{Target: "us-east", Durable: true}
	for _, obj := range []*unstructured.Unstructured{newServiceCluster(acme, "kept"), newServiceCluster(acme, "gone"), newAccount("grown"), newAccount("old")} {
		_, err := c.Add(t.Context(), obj, at)
		require.NoError(t, err)
	}
	atWork(t, c)
	time.Sleep(2 * time.Minute)
	saved := r.Server("us-east").Save()

	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), at)
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newAccount("new"), at)
	require.NoError(t, err)
	_, err = c.Update(t.Context(), newAccount("grown", "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "gone"), fanout.RemoveOptions{})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), accounts, key("", "old"), fanout.RemoveOptions{})
	require.NoError(t, err)
	time.Sleep(3 * time.Minute)
	require.NoError(t, r.Server("us-east").Load(saved))
	return r, c, acme
}

// forgetRemoved deletes from us-east, the restored peer of forgetful, the objects that were removed
// after the backup. Comeback requires a person to do that.
func forgetRemoved(t *testing.T, r *regiontest.Ring, acme string) {
	t.Helper()
	forget(t, clusters(t, r, "us-east", acme), "gone")
	deleteAt(t, r, "us-east", "old")
	strip(t, r, "us-east", "old")
}

// The notes of the other members show that a peer was restored from an older state. Coordinators
// do not trust that peer and write nothing to it.
func TestARestoredPeerIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, acme := forgetful(t)
		r.Server("us-east").Reset()
		report, err := c.Audit(t.Context(), true)
		require.NoError(t, err)
		require.ErrorContains(t, report.Unread.Err(), "the peer was restored from an older state")
		time.Sleep(5 * time.Minute) // several sweeps of Start
		for _, request := range r.Server("us-east").Requests() {
			require.Equal(t, "GET", request.Method, "%s %s", request.Method, request.Path)
		}
		_, err = c.Add(t.Context(), newServiceCluster(acme, "other"), fanout.AddOptions{Target: "eu-west"})
		require.ErrorIs(t, err, fanout.ErrReturned)
		require.ErrorContains(t, err, "atollctl peer comeback us-east")
		returned, ok := errors.AsType[*fanout.ReturnedError](err)
		require.True(t, ok)
		require.EqualValues(t, "us-east", returned.Peer)
		require.Less(t, returned.Epoch, returned.Noted)
		require.Equal(t, []region.PeerName{"ap-south", "eu-west"}, returned.By)

		require.True(t, holds(t, r, "eu-west", acme, "db"), "its guard stays")
	})
}

// A removal finds the object that a restored peer has again, or the later object of the same name. Nothing shows the
// restore yet. The removal removes one of the objects, and reports the other one.
func TestARemovalReportsAnotherObjectOfTheName(t *testing.T) {
	for kind, of := range map[schema.GroupKind]func(acme string) (types.NamespacedName, *unstructured.Unstructured){
		serviceClusters: func(acme string) (types.NamespacedName, *unstructured.Unstructured) {
			return key(acme, "db"), newServiceCluster(acme, "db")
		},
		accounts: func(string) (types.NamespacedName, *unstructured.Unstructured) {
			return key("", "late"), newAccount("late")
		},
	} {
		t.Run(kind.Kind, func(t *testing.T) {
			r := newRing(t)
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
			name, obj := of(addAccount(t, c))
			_, err := c.Add(t.Context(), obj, fanout.AddOptions{Target: "us-east"})
			require.NoError(t, err)
			saved := r.Server("us-east").Save()
			_, err = c.Remove(t.Context(), kind, name, fanout.RemoveOptions{})
			require.NoError(t, err)
			_, err = c.Add(t.Context(), obj, fanout.AddOptions{Target: "eu-west"})
			require.NoError(t, err)
			require.NoError(t, r.Server("us-east").Load(saved))

			op, err := c.Remove(t.Context(), kind, name, fanout.RemoveOptions{})
			require.ErrorIs(t, err, fanout.ErrReturned)
			held, ok := errors.AsType[*fanout.HeldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, fanout.Done, op.State)
			require.ElementsMatch(t, []region.PeerName{"us-east", "eu-west"}, []region.PeerName{op.Primary, held.Holder})
		})
	}
}

// Comeback is refused while the restored peer holds objects that were removed after the backup.
// After a person has deleted them, Comeback restores updates and Accounts from the other members,
// and lists the object that exists once as lost.
func TestARestoredPeerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, acme := forgetful(t)
		_, err := c.Comeback(t.Context(), "us-east")
		blocked, ok := errors.AsType[*fanout.BlockedError](err)
		require.True(t, ok, "%v", err)
		var names []string
		for _, o := range blocked.Blocking {
			names = append(names, o.Key.Name)
		}
		require.ElementsMatch(t, []string{"gone", "old"}, names, "they were removed since")
		forgetRemoved(t, r, acme)

		change, err := c.Comeback(t.Context(), "us-east")
		require.NoError(t, err)
		require.Equal(t, fanout.Done, change.State)
		require.Len(t, change.Lost, 1)
		require.Equal(t, key(acme, "db"), change.Lost[0].Key)
		require.NotEmpty(t, change.Lost[0].Operation)

		for _, p := range peers {
			grown, err := accountsIn(t, r, p).Get(t.Context(), "grown", metav1.GetOptions{})
			require.NoError(t, err)
			require.True(t, revised(grown), "the update is in %s", p)
			require.True(t, present(read(t, accountsIn(t, r, p), "new")), "the forgotten object is in %s again", p)
		}
		_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, "us-east", held.Lost)
		_, err = c.ReleaseRemoval(t.Context(), serviceClusters, key(acme, "db"), change.Lost[0].UID)
		require.NoError(t, err)
		_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		requireClean(t, c)
	})
}

// Comeback ends a committed removal that holds the name of an object of the restored peer, if the
// process of the removal has stopped.
func TestAComebackEndsARemovalThatHoldsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, c)
		db := newServiceCluster(acme, "db")
		_, err := c.Add(t.Context(), db, fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		saved := r.Server("us-east").Save()
		_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		_, err = c.Add(t.Context(), db, fanout.AddOptions{Target: "eu-west", Durable: true})
		require.NoError(t, err)
		// No coordinator runs that would end the removal.
		require.NoError(t, clustersIn(t, r, "eu-west", acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
		require.NoError(t, r.Server("us-east").Load(saved))

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = c.Comeback(ctx, "us-east")
		blocked, ok := errors.AsType[*fanout.BlockedError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, blocked.Blocking, 1)
		require.Equal(t, key(acme, "db"), blocked.Blocking[0].Key)
		require.EqualValues(t, "us-east", blocked.Blocking[0].Peer)
		require.False(t, holds(t, r, "eu-west", acme, "db"), "its removal has ended")

		forget(t, clusters(t, r, "us-east", acme), "db")
		change, err := c.Comeback(t.Context(), "us-east")
		require.NoError(t, err)
		require.Empty(t, change.Lost)
		_, err = c.Add(t.Context(), db, fanout.AddOptions{Target: "eu-west", Durable: true})
		require.NoError(t, err, "the name is free")
		requireClean(t, c)
	})
}

// An operation is committed in a peer that Comeback is bringing back. Until that peer is a full
// member again, the operation changes no other peer, and it reports why for each of them.
func TestAnOperationSaysThatItsHomeIsBeingBroughtBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c, acme := forgetful(t)
		_, err := c.Comeback(t.Context(), "us-east")
		_, blocked := errors.AsType[*fanout.BlockedError](err)
		require.True(t, blocked, "%v", err)

		updated, err := c.Update(t.Context(), newAccount("grown", "Tenant", "Provider"), fanout.AddOptions{})
		require.NoError(t, err)
		gone, err := c.Remove(t.Context(), accounts, key("", "grown"), fanout.RemoveOptions{})
		requireRejoining(t, err)
		removed, err := c.Remove(t.Context(), serviceClusters, key(acme, "kept"), fanout.RemoveOptions{})
		requireRejoining(t, err)
		for _, op := range []*fanout.Operation{updated, gone, removed} {
			require.Equal(t, fanout.Committed, op.State)
			for o := range op.Peers.All() {
				require.Equal(t, fanout.PeerPending, o.Value, "%s", o.Peer)
				if o.Peer == "us-east" {
					require.ErrorContains(t, o.Err, "the peer is being brought back: atollctl peer comeback us-east")
					continue
				}
				require.ErrorContains(t, o.Err, "is asked after peer us-east")
				require.True(t, holds(t, r, o.Peer, acme, "kept"), "its guard in %s stays", o.Peer)
				require.NotNil(t, read(t, accountsIn(t, r, o.Peer), "grown"), "its replica in %s stays", o.Peer)
			}
		}

		forgetRemoved(t, r, acme)
		_, err = c.Comeback(t.Context(), "us-east")
		require.NoError(t, err)
		_, err = c.Recover(t.Context())
		require.NoError(t, err)
		for _, p := range peers {
			require.False(t, holds(t, r, p, acme, "kept"))
			_, err := accountsIn(t, r, p).Get(t.Context(), "grown", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
	})
}

// requireRejoining requires the error of a removal that is committed in us-east while that peer is being brought back.
// Another peer might have another object of the name.
func requireRejoining(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, fanout.ErrReturned)
	_, doubt := errors.AsType[*fanout.InDoubtError](err)
	require.True(t, doubt, "%v", err)
	require.ErrorContains(t, err, "atollctl peer comeback us-east")
}

// The process of an update died after the commit was sent, and the home's peer was restored since.
// The update is not reported as aborted: it was in effect, although only the log still has it.
func TestAnAttemptThatARestoreForgotIsNotAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		_, err := c.Add(t.Context(), newAccount("grown"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		atWork(t, c)
		time.Sleep(2 * time.Minute)
		saved := r.Server("us-east").Save()
		time.Sleep(3 * time.Minute) // the other members note a later epoch than the saved one

		log, stop := waltest.NewMemory(), newCrash(0, true)
		stop.of = func(e fanout.StepEvent) bool { return e.Verb == "put" && e.Peer == "us-east" }
		doomed := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: stop.step}, Cleanup: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() {
			_, err := doomed.Update(ctx, newAccount("grown", "Provider"), fanout.AddOptions{})
			returned <- err
		}()
		<-stop.stopped
		require.NoError(t, r.Server("us-east").Load(saved))
		successor := coordinator(t, r, log.Reopen(), fanout.Options{})
		_, err = successor.Recover(t.Context())
		require.ErrorIs(t, err, fanout.ErrReturned, "until then it is in doubt")

		_, err = c.Comeback(t.Context(), "us-east")
		require.NoError(t, err)
		_, err = c.Update(t.Context(), newAccount("grown", "Tenant", "Provider"), fanout.AddOptions{})
		require.NoError(t, err)

		settled, err := successor.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, settled, 1)
		require.Equal(t, fanout.Ended, settled[0].State)
		_, err = successor.Outcome(t.Context(), settled[0].ID)
		require.ErrorIs(t, err, fanout.ErrEnded)
		require.ErrorContains(t, err, "us-east")
		require.ErrorContains(t, err, "the peer was restored from an older state after the commit may have been sent")

		heal := cut(r)
		cancel()
		close(stop.release)
		require.NoError(t, <-returned, "its commit was answered before the restore")
		heal()
	})
}

// The process of an add died. The add is in doubt while its home is missing and an Active replica
// proves the commit. The error names the remedies; after a release the add ends.
func TestAnAddWhoseHomeIsMissingSaysWhatDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		log, stop := waltest.NewMemory(), newCrash(0, true)
		inEffect := map[region.PeerName]bool{}
		stop.of = func(e fanout.StepEvent) bool {
			if e.Verb == "put" && e.Stage == "Active" {
				inEffect[e.Peer] = true
			}
			return len(inEffect) == len(peers)
		}
		doomed := coordinator(t, r, log, fanout.Options{Observer: &fanout.Observer{Step: stop.step}, Cleanup: time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = doomed.Add(ctx, newAccount("orphan"), fanout.AddOptions{Target: "us-east", Durable: true})
		}()
		<-stop.stopped
		forget(t, accountsIn(t, r, "us-east"), "orphan")

		successor := coordinator(t, r, log.Reopen(), fanout.Options{})
		_, err := successor.Recover(t.Context())
		doubt, ok := errors.AsType[*fanout.InDoubtError](err)
		require.True(t, ok, "%v", err)
		require.Empty(t, doubt.Peers, "all peers answer")
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, "us-east", held.Lost)
		require.ErrorContains(t, err, "atollctl peer comeback us-east")

		_, err = successor.ReleaseRemoval(t.Context(), accounts, key("", "orphan"), held.UID)
		require.NoError(t, err)
		_, err = successor.Recover(t.Context())
		require.NoError(t, err)
		sweep(t, successor)
		requireGone(t, r, "orphan")

		heal := cut(r)
		cancel()
		close(stop.release)
		<-ended
		heal()
	})
}
