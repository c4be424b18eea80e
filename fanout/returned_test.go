// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// requireObject requires that the operation returned the present state of the object but for its status, which
// Kind.Activate may have written since.
func requireObject(t *testing.T, client dynamic.ResourceInterface, op *fanout.Operation) {
	t.Helper()
	require.NotNil(t, op.Object)
	now := read(t, client, op.Object.GetName())
	require.Equal(t, now.Object["spec"], op.Object.Object["spec"])
	require.Equal(t, []any{now.GetUID(), now.GetGeneration()}, []any{op.UID, op.Object.GetGeneration()})
	require.Equal(t, op.UID, op.Object.GetUID())
}

// requireLatest requires that the operation returned the present state of the object, and that a status update which
// begins with it is no conflict.
func requireLatest(t *testing.T, client dynamic.ResourceInterface, op *fanout.Operation) {
	t.Helper()
	require.NotNil(t, op.Object)
	now := read(t, client, op.Object.GetName())
	require.Equal(t, now.Object, op.Object.Object)
	require.Equal(t, op.UID, op.Object.GetUID())
	op.Object.Object["status"] = map[string]any{"observedGeneration": op.Object.GetGeneration()}
	_, err := client.UpdateStatus(t.Context(), op.Object, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// An add, an update, a move and an adoption return the object. Work in the background does not change it.
func TestOperationsReturnTheObject(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	op, err := c.Add(t.Context(), newAccount("acme"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	requireObject(t, accountsIn(t, r, "us-east"), op)
	op, err = c.Update(t.Context(), newAccount("acme", "Provider"), fanout.AddOptions{})
	require.NoError(t, err)
	requireObject(t, accountsIn(t, r, "us-east"), op)
	roles := op.Object.Object["spec"].(map[string]any)["roles"]
	require.Equal(t, []any{"Provider"}, roles)
	op, err = c.Move(t.Context(), accounts, key("", "acme"), "eu-west", fanout.MoveOptions{})
	require.NoError(t, err)
	requireObject(t, accountsIn(t, r, "eu-west"), op)

	for name, durable := range map[string]bool{"db": false, "durable": true} {
		op, err = c.Add(t.Context(), newServiceCluster("acme", name), fanout.AddOptions{Target: "us-east", Durable: durable})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
		requireLatest(t, clustersIn(t, r, "us-east", "acme"), op)
	}
	_, err = clustersIn(t, r, "eu-west", "acme").Create(t.Context(), newServiceCluster("acme", "applied"), metav1.CreateOptions{})
	require.NoError(t, err)
	op, err = c.Adopt(t.Context(), "eu-west", serviceClusters, key("acme", "applied"))
	require.NoError(t, err)
	require.NoError(t, c.Wait(t.Context()))
	requireLatest(t, clustersIn(t, r, "eu-west", "acme"), op)
}

// A removal, an operation that is not committed, and a result from the log have no object.
func TestOperationsWithoutAnObject(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	opts := fanout.AddOptions{Target: "us-east", IdempotencyKey: "k"}
	_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	again, err := c.Add(t.Context(), newServiceCluster(acme, "db"), opts)
	require.NoError(t, err)
	require.Nil(t, again.Object)
	removed, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Nil(t, removed.Object)
	r.Partition("eu-west", true)
	aborted, err := c.Add(within(t, 3*time.Second), newServiceCluster(acme, "other"), fanout.AddOptions{Target: "us-east"})
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.Nil(t, aborted.Object)
}
