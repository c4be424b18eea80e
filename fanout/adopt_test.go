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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func accountsIn(t testing.TB, r *regiontest.Ring, peer region.PeerName) dynamic.ResourceInterface {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	return conn.Dynamic().Resource(fanout.ServiceClusters().Within)
}

func clustersIn(t testing.TB, r *regiontest.Ring, peer region.PeerName, namespace string) dynamic.ResourceInterface {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	return conn.Dynamic().Resource(serviceClusterResource).Namespace(namespace)
}

// apply applies obj server-side, as a person with a manifest does, and returns the result.
func apply(t testing.TB, client dynamic.ResourceInterface, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	applied, err := client.Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "alice"})
	require.NoError(t, err)
	return applied
}

func read(t testing.TB, client dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return obj
}

func rolesOf(t testing.TB, obj *unstructured.Unstructured) []string {
	t.Helper()
	roles, _, err := unstructured.NestedStringSlice(obj.Object, "spec", "roles")
	require.NoError(t, err)
	return roles
}

func TestAdoptServiceCluster(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	client := clustersIn(t, r, "us-east", acme)
	cluster := newServiceCluster(acme, "db")
	cluster.Object["spec"].(map[string]any)["metadata"] = map[string]any{"displayName": "a database"}
	applied := apply(t, client, cluster)

	op, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.EqualValues(t, "us-east", op.Primary)
	requireClean(t, c)
	e, err := c.ExplainName(t.Context(), serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	require.Equal(t, "adopt", e.Action)
	requireSettled(t, log)
	adopted := read(t, client, "db")
	require.Equal(t, applied.GetUID(), adopted.GetUID(), "it is the same object")
	require.Equal(t, []string{"fanout.atoll.dev/primary"}, adopted.GetFinalizers())

	// The adoption leaves the fields to the person's tool: if the manifest drops a field, an apply
	// removes it.
	applied = apply(t, client, newServiceCluster(acme, "db"))
	require.NotContains(t, applied.Object["spec"], "metadata")
	require.Contains(t, applied.Object["spec"], "fanout")

	again, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	require.True(t, again.AlreadyDone)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	requireClean(t, c)
}

func TestAdoptAccountAndEditIt(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := unique("acme")
	home := accountsIn(t, r, "us-east")
	apply(t, home, newAccount(name))
	op, err := c.Adopt(t.Context(), "us-east", accounts, key("", name))
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.EqualValues(t, 1, op.Revision)
	requireClean(t, c)
	for _, p := range peers {
		require.Equal(t, []string{"Tenant"}, rolesOf(t, read(t, accountsIn(t, r, p), name)), p)
	}

	// An audit reports an edit of the home as in progress, and a sweep commits the edit.
	apply(t, home, newAccount(name, "Provider"))
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	require.Contains(t, invariants(report.Pending), "edit")
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, c)
	for _, p := range peers {
		obj := read(t, accountsIn(t, r, p), name)
		require.Equal(t, []string{"Provider"}, rolesOf(t, obj), p)
		number, _, err := unstructured.NestedInt64(obj.Object, "spec", "fanout", "revision", "number")
		require.NoError(t, err)
		require.EqualValues(t, 2, number, p)
	}

	// An update that finds an edit which is not committed yet commits the edit first.
	apply(t, home, newAccount(name, "Tenant"))
	op, err = c.Update(t.Context(), newAccount(name, "Provider", "Tenant"), fanout.AddOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 4, op.Revision)
	requireClean(t, c)
	for _, p := range peers {
		require.Equal(t, []string{"Provider", "Tenant"}, rolesOf(t, read(t, accountsIn(t, r, p), name)), p)
	}
	requireSettled(t, log)
}

// A person edits the object just before the adoption writes the claim. The adoption succeeds, and
// all peers get the edited content.
func TestAdoptWhileEdited(t *testing.T) {
	r := newRing(t)
	name := unique("acme")
	home := accountsIn(t, r, "us-east")
	apply(t, home, newAccount(name))
	var once sync.Once
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Observer: &fanout.Observer{Step: func(_ context.Context, e fanout.StepEvent) {
		if e.Verb == "put" && e.Peer == "us-east" && e.Stage == "Active" && !e.Done {
			once.Do(func() { apply(t, home, newAccount(name, "Provider")) })
		}
	}}})
	op, err := c.Adopt(t.Context(), "us-east", accounts, key("", name))
	require.NoError(t, err)
	require.EqualValues(t, 1, op.Revision)
	requireClean(t, c)
	for _, p := range peers {
		require.Equal(t, []string{"Provider"}, rolesOf(t, read(t, accountsIn(t, r, p), name)), p)
	}
}

func TestTwoAdoptersOfOneObject(t *testing.T) {
	r := newRing(t)
	acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
	apply(t, clustersIn(t, r, "eu-west", acme), newServiceCluster(acme, "db"))
	const adopters = 4
	failures := make([]error, adopters)
	var wg sync.WaitGroup
	for i := range adopters {
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		wg.Go(func() { _, failures[i] = c.Adopt(t.Context(), "eu-west", serviceClusters, key(acme, "db")) })
	}
	wg.Wait()
	for _, err := range failures {
		require.NoError(t, err)
	}
	requireClean(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
}

// If two peers each hold an object of one name without a claim, Adopt of one object returns a
// HeldError, and neither object gets a claim. After a person has deleted one object, Adopt of the
// other one succeeds.
func TestAdoptOneOfTwo(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	here, there := clustersIn(t, r, "ap-south", acme), clustersIn(t, r, "us-east", acme)
	apply(t, here, newServiceCluster(acme, "db"))
	other := apply(t, there, newServiceCluster(acme, "db"))
	_, err := c.Adopt(t.Context(), "ap-south", serviceClusters, key(acme, "db"))
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, "us-east", held.Holder)
	require.Equal(t, other.GetUID(), held.UID)
	require.Empty(t, held.Operation)
	require.NotContains(t, read(t, here, "db").Object["spec"], "fanout")
	require.NotContains(t, read(t, there, "db").Object["spec"], "fanout")
	requireSettled(t, log)

	require.NoError(t, here.Delete(t.Context(), "db", metav1.DeleteOptions{}))
	_, err = c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	requireClean(t, c)
}

// If a peer does not answer, the adoption fails, and the object gets no claim. A later adoption
// succeeds, although the failed one may have left guards.
func TestAdoptWithAnUnreachablePeer(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	client := clustersIn(t, r, "us-east", acme)
	apply(t, client, newServiceCluster(acme, "db"))
	r.Partition("eu-west", true)
	_, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorIs(t, err, region.ErrUnavailable)
	require.NotContains(t, read(t, client, "db").Object["spec"], "fanout")
	r.Partition("eu-west", false)
	_, err = c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
	require.NoError(t, err)
	requireClean(t, c)
	requireSettled(t, log)
}

func TestWhatCannotBeAdopted(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "nothing"))
	require.ErrorIs(t, err, fanout.ErrNotFound)
	_, err = c.Adopt(t.Context(), "nowhere", serviceClusters, key(acme, "nothing"))
	require.ErrorIs(t, err, region.ErrUnknownPeer)
	_, err = c.Adopt(t.Context(), "", serviceClusters, key(acme, "nothing"))
	require.ErrorContains(t, err, "peer is empty")

	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	_, err = c.Adopt(t.Context(), "eu-west", serviceClusters, key(acme, "db"))
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, "us-east", held.Holder)

	apply(t, clustersIn(t, r, "us-east", "default"), newServiceCluster("default", "db"))
	_, err = c.Adopt(t.Context(), "us-east", serviceClusters, key("default", "db"))
	require.ErrorIs(t, err, fanout.ErrNoOwner)
}

// Start adopts an object that was applied without a claim, if its kind sets AdoptApplied.
func TestStartAdopts(t *testing.T) {
	r := newRing(t)
	kinds := account.Kinds()
	for i := range kinds {
		kinds[i].AdoptApplied = true
	}
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Kinds: kinds, SweepEvery: 10 * time.Millisecond})
	name := unique("acme")
	apply(t, accountsIn(t, r, "eu-west"), newAccount(name))
	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, []string{"adoption"}, invariants(report.Pending))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = c.Start(ctx) })
	require.Eventually(t, func() bool {
		for _, p := range peers {
			obj, err := accountsIn(t, r, p).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false
			}
			if stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage"); stage != "Active" {
				return false
			}
		}
		return true
	}, 20*time.Second, 5*time.Millisecond)
}

// TestAdoptCrashes stops an adoption at each of its commands, once before and once after the
// command. With -short it leaves commands out (see stride). The next process recovers the adoption
// from the log.
func TestAdoptCrashes(t *testing.T) {
	adopted := func(obj *unstructured.Unstructured) bool { return obj != nil }
	for _, tc := range []crashCase{{
		name:   "adopt ServiceCluster",
		effect: adopted,
		prepare: func(*testing.T, *fanout.Coordinator, string) types.NamespacedName {
			return key("", unique("db"))
		},
	}, {
		name:   "adopt Account",
		effect: adopted,
		prepare: func(*testing.T, *fanout.Coordinator, string) types.NamespacedName {
			return key("", unique("acme"))
		},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := distant(newRing(t))
				acme := addAccount(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}))
				prepare := tc.prepare
				gk := accounts
				tc.prepare = func(t *testing.T, c *fanout.Coordinator, _ string) types.NamespacedName {
					t.Helper()
					at := prepare(t, c, acme)
					if tc.name == "adopt ServiceCluster" {
						at.Namespace, gk = acme, serviceClusters
						apply(t, clustersIn(t, r, "us-east", acme), newServiceCluster(acme, at.Name))
					} else {
						apply(t, accountsIn(t, r, "us-east"), newAccount(at.Name))
					}
					return at
				}
				tc.run = func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
					_, err := c.Adopt(ctx, "us-east", gk, key)
					return err
				}
				for _, after := range []bool{false, true} {
					at := 0
					for ; crashOnce(t, r, acme, tc, at, after); at += stride() {
					}
					require.Greater(t, at, 8, "an operation has more commands than that")
				}
			})
		})
	}
}
