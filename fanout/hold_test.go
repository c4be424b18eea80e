// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// home is the peer that holds the primaries of the Accounts in these tests.
const home region.PeerName = "ap-south"

var crdsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// addAccounts adds n Accounts with their primaries at home.
func addAccounts(t testing.TB, c *fanout.Coordinator, n int) []string {
	t.Helper()
	var (
		names []string
		wg    sync.WaitGroup
	)
	for range n {
		name := unique("acme")
		names = append(names, name)
		wg.Go(func() {
			if _, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: home}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return names
}

func sweep(t testing.TB, coordinators ...*fanout.Coordinator) {
	t.Helper()
	for _, c := range coordinators {
		_, err := c.Sweep(t.Context())
		require.NoError(t, err)
	}
}

// requireInForce fails the test unless every peer holds each Account in stage Active, and only the
// object in home may have a deletionTimestamp.
func requireInForce(t testing.TB, r *regiontest.Ring, names ...string) {
	t.Helper()
	for _, p := range peers {
		for _, name := range names {
			obj, err := accountsIn(t, r, p).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err, "in %s", p)
			stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
			require.Equal(t, "Active", stage, "in %s", p)
			require.True(t, p == home || obj.GetDeletionTimestamp() == nil, "in %s", p)
		}
	}
}

func requireGone(t testing.TB, r *regiontest.Ring, names ...string) {
	t.Helper()
	for _, p := range peers {
		for _, name := range names {
			_, err := accountsIn(t, r, p).Get(t.Context(), name, metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "in %s: %v", p, err)
		}
	}
}

func holdOf(t testing.TB, r *regiontest.Ring, name string) fanout.Hold {
	t.Helper()
	obj, err := accountsIn(t, r, home).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	held, ok := account.Kind().Hold(obj)
	require.True(t, ok)
	return held
}

func deleteAt(t testing.TB, r *regiontest.Ring, peer region.PeerName, name string) {
	t.Helper()
	require.NoError(t, accountsIn(t, r, peer).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func TestADeletionOfAnOccupiedAccountIsHeld(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccounts(t, c, 1)[0]
	for _, name := range []string{"db", "web"} {
		_, err := c.Add(t.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
	}
	deleteAt(t, r, home, acme)
	sweep(t, c)
	requireInForce(t, r, acme)
	held := holdOf(t, r, acme)
	require.Equal(t, "Occupied", held.Reason)
	require.Equal(t, "2 serviceclusters.kubecarrier.io in us-east", held.Message)
	obj, err := accountsIn(t, r, home).Get(t.Context(), acme, metav1.GetOptions{})
	require.NoError(t, err)
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	require.Contains(t, fmt.Sprint(conditions), "RemovalHeld")

	report, err := c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	require.Len(t, report.Pending, 1)
	require.Equal(t, "held", report.Pending[0].Invariant)
	require.Contains(t, report.Pending[0].Text, "2 serviceclusters.kubecarrier.io in us-east")
	_, err = c.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
	require.ErrorAs(t, err, new(*fanout.OccupiedError), "an explicit removal is refused by the same occupants")
	requireInForce(t, r, acme)

	// Sweeps of a coordinator that starts after the hold was stored do not end the hold, and no sweep
	// writes anything.
	for _, p := range peers {
		r.Server(p).Reset()
	}
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	sweep(t, other, c, other)
	require.Zero(t, writes(r))
	requireInForce(t, r, acme)

	// A replica that is deleted while the removal is held is restored.
	deleteAt(t, r, "eu-west", acme)
	sweep(t, other)
	requireInForce(t, r, acme)

	for _, name := range []string{"db", "web"} {
		_, err := c.Remove(t.Context(), serviceClusters, key(acme, name), fanout.RemoveOptions{})
		require.NoError(t, err)
		sweep(t, other)
	}
	requireGone(t, r, acme)
	requireClean(t, c)
}

func TestADeletionIsHeldWhileAPeerIsSilent(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccounts(t, c, 1)[0]
	deleteAt(t, r, home, acme)
	r.Partition("us-east", true)
	_, err := c.Sweep(t.Context())
	require.Error(t, err, "us-east does not answer")
	r.Partition("us-east", false)
	requireInForce(t, r, acme)
	held := holdOf(t, r, acme)
	require.Equal(t, "Unknown", held.Reason)
	require.Equal(t, "no answer from us-east", held.Message)
	sweep(t, c)
	requireGone(t, r, acme)
	requireClean(t, c)
}

func TestAReleaseLetsAHeldRemovalGo(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccounts(t, c, 1)[0]
	_, err := c.ReleaseRemoval(t.Context(), accounts, key("", acme), "")
	require.ErrorIs(t, err, fanout.ErrNotHeld)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	deleteAt(t, r, home, acme)
	sweep(t, c)
	requireInForce(t, r, acme)

	// An annotation with the UID of another object does not release the removal.
	stale := fmt.Sprintf(`{"metadata":{"annotations":{%q:"another-uid"}}}`, v1alpha1.ReleaseRemovalAnnotation)
	_, err = accountsIn(t, r, home).Patch(t.Context(), acme, types.MergePatchType, []byte(stale), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = c.ReleaseRemoval(t.Context(), accounts, key("", acme), "another-uid")
	require.ErrorIs(t, err, fanout.ErrNotHeld)
	sweep(t, c)
	requireInForce(t, r, acme)

	held, err := c.ReleaseRemoval(t.Context(), accounts, key("", acme), "")
	require.NoError(t, err)
	require.Equal(t, "Occupied", held.Reason)
	sweep(t, c)
	obj, err := accountsIn(t, r, home).Get(t.Context(), acme, metav1.GetOptions{})
	require.NoError(t, err)
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	require.Equal(t, "Removing", stage, "it waits for what lives in its namespace, as any removal")
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	sweep(t, c)
	requireGone(t, r, acme)

	// The release does not apply to the next Account of the name.
	_, err = c.Add(t.Context(), newAccount(acme), fanout.AddOptions{Target: home})
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	deleteAt(t, r, home, acme)
	sweep(t, c)
	requireInForce(t, r, acme)
}

func TestTheHomeOfAHeldAccountMoves(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccounts(t, c, 1)[0]
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	deleteAt(t, r, home, acme)
	sweep(t, c)
	op, err := c.Move(t.Context(), accounts, key("", acme), "eu-west", fanout.MoveOptions{})
	require.NoError(t, err)
	require.Equal(t, region.PeerName("eu-west"), op.Primary)
	sweep(t, c)
	requireInForce(t, r, acme)
	for _, p := range peers {
		obj, err := accountsIn(t, r, p).Get(t.Context(), acme, metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, obj.GetDeletionTimestamp(), "the deletion is undone in %s", p)
	}
	requireClean(t, c)
}

func TestTheDeletionOfAllAccountsIsHeld(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	names := addAccounts(t, c, 20)
	require.NoError(t, accountsIn(t, r, home).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	sweep(t, c, other)
	requireInForce(t, r, names...)
	held := holdOf(t, r, names[0])
	require.Equal(t, "TooMany", held.Reason)
	require.Contains(t, held.Message, "20 of 20")
	for _, p := range peers {
		r.Server(p).Reset()
	}
	sweep(t, other)
	require.Zero(t, writes(r))

	// A released Account is removed. The rest stay held, although they are fewer than the cap.
	for _, name := range names[:17] {
		_, err := c.ReleaseRemoval(t.Context(), accounts, key("", name), "")
		require.NoError(t, err)
	}
	sweep(t, other, c)
	requireGone(t, r, names[:17]...)
	requireInForce(t, r, names[17:]...)
}

func TestDeletionsWaitForOthersOfTheirKind(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{RemovalCap: fanout.RemovalCap{Objects: 2, Within: time.Hour}})
	names := addAccounts(t, c, 3)
	at := coordinator(t, r, waltest.NewMemory(), fanout.Options{RemovalCap: fanout.RemovalCap{Objects: 2}})
	for _, name := range names {
		deleteAt(t, r, home, name)
		sweep(t, c)
	}
	requireInForce(t, r, names...)
	require.Empty(t, holdOf(t, r, names[0]).Reason, "no sweep has judged it")
	sweep(t, at)
	requireInForce(t, r, names...)
	require.Equal(t, "TooMany", holdOf(t, r, names[0]).Reason)
}

func TestTheDeletionOfTheTypeIsHeld(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	names := addAccounts(t, c, 8)
	elsewhere := unique("elsewhere")
	_, err := c.Add(t.Context(), newAccount(elsewhere), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	conn, err := r.Conn(home)
	require.NoError(t, err)
	crds := conn.Dynamic().Resource(crdsResource)
	require.NoError(t, crds.Delete(t.Context(), "accounts.catalog.kubecarrier.io", metav1.DeleteOptions{}))
	_, _ = c.Sweep(t.Context()) // may fail: a real API server rejects creates of a type that is being deleted
	requireInForce(t, r, names...)
	require.Equal(t, "TooMany", holdOf(t, r, names[0]).Reason)

	// All homes move to another peer. Then the peer home has only replicas of the type. They are
	// deleted with the type, and a sweep restores them when the type exists again.
	for _, name := range names {
		_, err := c.Move(t.Context(), accounts, key("", name), "eu-west", fanout.MoveOptions{})
		require.NoError(t, err)
	}
	// A real API server rejects creates of a type that is being deleted, so no sweep restores
	// replicas there. The server in memory may accept some: the test deletes them.
	require.NoError(t, accountsIn(t, r, home).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	require.Eventually(t, func() bool {
		_, err := crds.Get(t.Context(), "accounts.catalog.kubecarrier.io", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, time.Minute, time.Millisecond)

	// If a peer does not serve the type, a sweep does not take the objects there for absent: the sweep
	// fails, and deletes none of the objects in the other peers.
	_, err = c.Sweep(t.Context())
	require.Error(t, err)
	for _, p := range []region.PeerName{"eu-west", "us-east"} {
		for _, name := range append(names, elsewhere) {
			_, err := accountsIn(t, r, p).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
		}
	}
	crd, err := config.CRD("accounts.catalog.kubecarrier.io")
	require.NoError(t, err)
	require.NoError(t, r.Server(home).AddCRD(crd))
	sweep(t, c)
	requireInForce(t, r, append(names, elsewhere)...)
	requireClean(t, c)
}

func TestTwoCoordinatorsMeetAHeldRemoval(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccounts(t, c, 1)[0]
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	deleteAt(t, r, home, acme)
	other := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	var wg sync.WaitGroup
	for _, who := range []*fanout.Coordinator{c, other} {
		wg.Go(func() {
			for range 5 {
				_, _ = who.Sweep(t.Context()) // a write of one coordinator may conflict with a write of the other one
			}
		})
	}
	wg.Wait()
	requireInForce(t, r, acme)
	for _, who := range []*fanout.Coordinator{c, other} {
		wg.Go(func() {
			for range 5 {
				_, _ = who.Sweep(t.Context())
			}
		})
	}
	_, err = c.ReleaseRemoval(t.Context(), accounts, key("", acme), "")
	require.NoError(t, err)
	wg.Wait()
	sweep(t, c)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	sweep(t, c)
	requireGone(t, r, acme)
	requireClean(t, c)
}

// strip removes all finalizers of a deleted Account, as a person may do by hand.
func strip(t testing.TB, r *regiontest.Ring, peer region.PeerName, name string) {
	t.Helper()
	_, err := accountsIn(t, r, peer).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// If a home is deleted without a removal, its replicas stay, because they prove the commit. They
// hold the name, and audits report them, until a person releases them.
func TestReplicasWithoutAHomeAreKept(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	names := addAccounts(t, c, 2)
	for _, name := range names {
		deleteAt(t, r, home, name)
		strip(t, r, home, name)
	}
	for _, p := range peers {
		r.Server(p).Reset()
	}
	sweep(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}), c)
	require.Zero(t, writes(r))
	report, err := c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []string{"lost", "lost", "lost", "lost"}, invariants(report.Violations))
	require.Contains(t, report.Violations[0].Text, "atollctl peer comeback "+string(home))
	for _, p := range []region.PeerName{"eu-west", "us-east"} {
		for _, name := range names {
			_, err := accountsIn(t, r, p).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
		}
	}
	_, err = c.Add(t.Context(), newAccount(names[0]), fanout.AddOptions{Target: "us-east"})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, home, held.Lost)

	hold, err := c.ReleaseRemoval(t.Context(), accounts, key("", names[0]), held.UID)
	require.NoError(t, err)
	require.Equal(t, "Lost", hold.Reason)
	sweep(t, c)
	requireGone(t, r, names[0])
	_, err = accountsIn(t, r, "eu-west").Get(t.Context(), names[1], metav1.GetOptions{})
	require.NoError(t, err, "this one was not released")
}

// If a primary is deleted without a removal, its bound guards stay and hold the name until a person
// releases them.
func TestAGuardWithoutItsPrimaryIsKept(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
	require.NoError(t, err)
	require.True(t, op.Durable)
	backup := read(t, clusters(t, r, "us-east", acme), "db")
	forget(t, clusters(t, r, "us-east", acme), "db")
	sweep(t, c)
	report, err := c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []string{"lost", "lost"}, invariants(report.Violations))
	require.Contains(t, report.Violations[0].Text, op.ID)
	e, err := c.ExplainName(t.Context(), serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	require.Equal(t, "lost by Judging a secondary", judged(t, e)["eu-west"])

	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, "us-east", held.Lost)
	require.Equal(t, backup.GetUID(), held.UID)
	require.ErrorContains(t, err, "atollctl peer comeback us-east")

	_, err = c.ReleaseRemoval(t.Context(), serviceClusters, key(acme, "db"), "")
	require.NoError(t, err)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west", Durable: true})
	require.NoError(t, err)
	requireClean(t, c)
}

// forget deletes an object without a removal, as a restore from an older backup does.
func forget(t *testing.T, client dynamic.ResourceInterface, name string) {
	t.Helper()
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
	_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
