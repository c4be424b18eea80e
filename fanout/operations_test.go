// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var serviceClusterResource = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}

func TestAddRemoveServiceCluster(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)

	op, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", FieldManager: "alice"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.EqualValues(t, "us-east", op.Primary)
	states := map[region.PeerName]fanout.PeerState{}
	for o := range op.Peers.All() {
		require.NoError(t, o.Err)
		states[o.Peer] = o.Value
	}
	require.Equal(t, map[region.PeerName]fanout.PeerState{
		"ap-south": fanout.PeerGuard, "eu-west": fanout.PeerGuard, "us-east": fanout.PeerPrimary,
	}, states)
	requireClean(t, c)
	requireSettled(t, log)

	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		obj, err := conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Get(t.Context(), "db", metav1.GetOptions{})
		require.NoError(t, err)
		spec := obj.Object["spec"].(map[string]any)
		if peer == "us-east" {
			require.Equal(t, map[string]any{"name": "db"}, spec["kubeconfigSecret"])
		} else {
			require.NotContains(t, spec, "kubeconfigSecret", "a guard carries no payload")
		}
	}

	op, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	requireClean(t, c)
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		_, err = conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Get(t.Context(), "db", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", peer, err)
	}
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	requireSettled(t, log)
}

// After the commit the FieldManager of the add owns the fields of the payload, and can drop them by
// server-side apply without a conflict. The protocol owns the claim.
func TestPayloadIsTheRequesters(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	cluster := newServiceCluster(acme, "db")
	cluster.Object["spec"].(map[string]any)["metadata"] = map[string]any{"displayName": "a database"}
	_, err := c.Add(t.Context(), cluster, fanout.AddOptions{Target: "us-east", FieldManager: "alice"})
	require.NoError(t, err)
	conn, err := r.Conn("us-east")
	require.NoError(t, err)
	client := conn.Dynamic().Resource(serviceClusterResource).Namespace(acme)

	applied, err := client.Apply(t.Context(), "db", newServiceCluster(acme, "db"), metav1.ApplyOptions{FieldManager: "alice"})
	require.NoError(t, err)
	spec := applied.Object["spec"].(map[string]any)
	require.NotContains(t, spec, "metadata", "a field that the requester drops goes")
	require.Contains(t, spec, "fanout", "the claim stays")
	requireClean(t, c)
}

func TestRivalIsRefusedAndToldWhoHoldsTheName(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	first, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)

	for _, target := range peers {
		rival := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
		_, err = rival.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: target})
		held, ok := errors.AsType[*fanout.HeldError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, "us-east", held.Holder)
		require.Equal(t, first.ID, held.Operation)
		require.False(t, held.Since.IsZero())
		require.ErrorContains(t, err, "ServiceCluster "+acme+"/db is held by peer us-east")
	}
	requireClean(t, c)
}

func TestAnObjectWithoutClaimHoldsItsName(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	conn, err := r.Conn("eu-west")
	require.NoError(t, err)
	_, err = conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Create(t.Context(), newServiceCluster(acme, "db"), metav1.CreateOptions{})
	require.NoError(t, err)

	_, err = c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	held, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, "eu-west", held.Holder)
	require.Empty(t, held.Operation)
	_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.ErrorAs(t, err, &held)
	_, err = conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Get(t.Context(), "db", metav1.GetOptions{})
	require.NoError(t, err, "only a person deletes it")
	requireClean(t, c)
}

func TestAddNeedsAnActiveAccount(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err := c.Add(t.Context(), newServiceCluster("default", "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrNoOwner)
	require.ErrorIs(t, err, fanout.ErrAborted)
	_, err = c.Add(t.Context(), newServiceCluster("nowhere", "db"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.ErrorIs(t, err, fanout.ErrNoOwner)
	require.ErrorContains(t, err, "us-east")
	require.ErrorContains(t, err, "nowhere")
	requireClean(t, c)
}

func TestAccountLifecycle(t *testing.T) {
	r := newRing(t)
	log := waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	name := unique("acme")

	op, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.EqualValues(t, 1, op.Revision)

	again, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Add(t.Context(), newAccount(name), fanout.AddOptions{})
	require.NoError(t, err)
	require.True(t, again.AlreadyDone, "the same content is the same request")
	_, err = c.Add(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	_, ok := errors.AsType[*fanout.HeldError](err)
	require.True(t, ok, "%v", err)

	op, err = c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.EqualValues(t, 2, op.Revision)
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		obj, err := conn.Dynamic().Resource(fanout.ServiceClusters().Within).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []any{"Provider"}, obj.Object["spec"].(map[string]any)["roles"], peer)
		_, err = conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
	}
	requireClean(t, c)

	_, err = c.Add(t.Context(), newServiceCluster(name, "db"), fanout.AddOptions{Target: "eu-west"})
	require.NoError(t, err)
	_, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	occupied, ok := errors.AsType[*fanout.OccupiedError](err)
	require.True(t, ok, "%v", err)
	require.False(t, occupied.Committed)
	require.Len(t, occupied.Occupants, 3, "the cluster and its two guards")
	requireClean(t, c)

	_, err = c.Remove(t.Context(), serviceClusters, key(name, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	op, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	requireClean(t, c)
	requireSettled(t, log)

	_, err = c.Update(t.Context(), newAccount(name), fanout.AddOptions{})
	require.ErrorIs(t, err, fanout.ErrNotFound)

	empty := newAccount(unique("acme"))
	delete(empty.Object, "spec")
	op, err = c.Add(t.Context(), empty, fanout.AddOptions{})
	require.NoError(t, err, "an Account needs no content but its name")
	require.Equal(t, fanout.Done, op.State)
	requireClean(t, c)
}

func TestIdempotencyKeyGivesTheFirstAnswer(t *testing.T) {
	r := newRing(t)
	var log wal.Log = waltest.NewMemory()
	c := coordinator(t, r, log, fanout.Options{})
	acme := addAccount(t, c)
	opts := fanout.AddOptions{Target: "us-east", IdempotencyKey: "request-1"}
	first, err := c.Add(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	second, err := c.Add(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.Equal(t, first.ID, second.ID)
	require.Equal(t, fanout.Done, second.State)
	uid := read(t, clusters(t, r, "us-east", acme), "db").GetUID()
	require.Equal(t, []types.UID{uid, uid}, []types.UID{first.UID, second.UID})
	removed, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{UID: first.UID})
	require.NoError(t, err)
	require.Equal(t, uid, removed.UID)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "other"), opts)
	require.ErrorContains(t, err, "idempotency key")

	got, err := c.Outcome(t.Context(), "request-1")
	require.NoError(t, err)
	require.Equal(t, first.ID, got.ID)
	_, err = c.Outcome(t.Context(), "unheard-of")
	require.ErrorIs(t, err, wal.ErrNotFound)

	// A key whose operation had no effect may be used again.
	r.Partition("eu-west", true)
	opts.IdempotencyKey = "request-2"
	_, err = c.Add(within(t, 5*time.Second), newServiceCluster(acme, "db-2"), opts)
	require.ErrorIs(t, err, fanout.ErrAborted)
	r.Partition("eu-west", false)
	_, err = c.Add(t.Context(), newServiceCluster(acme, "db-2"), opts)
	require.NoError(t, err)
	requireClean(t, c)
}

func TestADeleteByHandIsARemoval(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	conn, err := r.Conn("us-east")
	require.NoError(t, err)
	client := conn.Dynamic().Resource(serviceClusterResource).Namespace(acme)
	require.NoError(t, client.Delete(t.Context(), "db", metav1.DeleteOptions{}))
	_, err = client.Get(t.Context(), "db", metav1.GetOptions{})
	require.NoError(t, err, "our finalizer holds it")

	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	requireClean(t, c)
	_, err = client.Get(t.Context(), "db", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestSweepRestoresGuardsAndReplicas(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	conn, err := r.Conn("eu-west")
	require.NoError(t, err)
	require.NoError(t, conn.Dynamic().Resource(serviceClusterResource).Namespace(acme).Delete(t.Context(), "db", metav1.DeleteOptions{}))
	require.NoError(t, conn.Dynamic().Resource(fanout.ServiceClusters().Within).Delete(t.Context(), acme, metav1.DeleteOptions{}))

	report, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Len(t, report.Violations, 2)
	for _, v := range report.Violations {
		require.Equal(t, "I2", v.Invariant)
		require.EqualValues(t, "eu-west", v.Peer)
	}
	report, err = c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Empty(t, report.Violations)
	require.Len(t, report.Repaired, 2)
	requireClean(t, c)
}
