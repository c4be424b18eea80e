// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// An update and a removal that name a revision or a UID change no other revision and no other object.
func TestABaseIsRequired(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	conflict := (*fanout.ConflictError)(nil)
	op, err := c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{Revision: 1})
	require.NoError(t, err)
	require.Equal(t, int64(2), op.Revision)
	_, err = c.Update(t.Context(), newAccount(name, "Tenant"), fanout.AddOptions{Revision: 1})
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, int64(2), conflict.Revision)
	_, err = c.Update(t.Context(), newAccount(name, "Tenant"), fanout.AddOptions{UID: "of another object"})
	require.ErrorIs(t, err, fanout.ErrNotFound)
	replica := read(t, accountsIn(t, r, "us-east"), name)
	op, err = c.Update(t.Context(), newAccount(name, "Tenant"), fanout.AddOptions{UID: replica.GetUID(), Revision: 2})
	require.NoError(t, err)
	require.Equal(t, int64(3), op.Revision)

	_, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Revision: 2})
	require.ErrorAs(t, err, &conflict)
	require.Nil(t, read(t, accountsIn(t, r, "us-east"), name).GetDeletionTimestamp())
	op, err = c.Remove(t.Context(), accounts, key("", name), fanout.RemoveOptions{Revision: 3})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
}

// An update under an idempotency key is another request than one with another base.
func TestABaseIsPartOfTheRequest(t *testing.T) {
	c := coordinator(t, newRing(t), waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	_, err := c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{Revision: 1, IdempotencyKey: "k"})
	require.NoError(t, err)
	_, err = c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{Revision: 1, IdempotencyKey: "k"})
	require.NoError(t, err)
	_, err = c.Update(t.Context(), newAccount(name, "Provider"), fanout.AddOptions{Revision: 2, IdempotencyKey: "k"})
	require.ErrorContains(t, err, "choose a new key")
}

// A removal that names the primary's resourceVersion removes no later version: neither one that it finds, nor one that
// appears while its commit is on the way.
func TestARemovalOfOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{CallTimeout: time.Minute})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east"})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
		client := clusters(t, r, "us-east", acme)
		edit := func(label string) string {
			o, err := client.Patch(t.Context(), "db", types.MergePatchType, []byte(`{"metadata":{"labels":{"edited":"`+label+`"}}}`), metav1.PatchOptions{})
			require.NoError(t, err)
			return o.GetResourceVersion()
		}
		first := edit("once")
		second := edit("twice")
		conflict := (*fanout.ConflictError)(nil)
		_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{ResourceVersion: first})
		require.ErrorAs(t, err, &conflict)
		third := ""
		meanwhile(t, r.Server("us-east"), "update", serviceClusterResource.GroupResource(), "db", func() { third = edit("meanwhile") }, func() {
			_, err = c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{ResourceVersion: second})
		})
		require.ErrorAs(t, err, &conflict)
		require.EqualError(t, conflict, "ServiceCluster "+acme+"/db was changed by another write: read it again and repeat the removal")
		require.Nil(t, read(t, client, "db").GetDeletionTimestamp())
		r.Server("us-east").Inject(regiontest.Fault{Verb: "update", Resource: serviceClusterResource.GroupResource(), Name: "db", Do: regiontest.DropReply()})
		op, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{ResourceVersion: third})
		require.NoError(t, err)
		require.Equal(t, fanout.Done, op.State)
	})
}
