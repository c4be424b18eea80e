// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	serviceClusters = schema.GroupKind{Group: "kubecarrier.io", Kind: "ServiceCluster"}
	accounts        = schema.GroupKind{Group: "catalog.kubecarrier.io", Kind: "Account"}
)

func TestMainJob(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	c, _ := r.coordinator(t, fanout.Options{})
	acme := unique("acme")
	ctx := within(t, time.Minute)

	op, err := c.Add(ctx, newAccount(acme), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())

	op, err = c.Add(ctx, newServiceCluster(acme, "db-1"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
	r.audited(t, c)

	rival, _ := r.coordinator(t, fanout.Options{})
	_, err = rival.Add(ctx, newServiceCluster(acme, "db-1"), fanout.AddOptions{Target: "ap-south"})
	var held *fanout.HeldError
	require.ErrorAs(t, err, &held)
	require.EqualValues(t, "us-east", held.Holder)
	r.audited(t, c)

	_, err = c.Remove(ctx, accounts, key("", acme), fanout.RemoveOptions{})
	var occupied *fanout.OccupiedError
	require.ErrorAs(t, err, &occupied)
	require.Len(t, occupied.Occupants, 3)

	changed := newAccount(acme)
	changed.Object["spec"].(map[string]any)["roles"] = []any{"Provider", "Tenant"}
	op, err = c.Update(ctx, changed, fanout.AddOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, op.Revision)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())

	op, err = c.Remove(ctx, serviceClusters, key(acme, "db-1"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())

	op, err = c.Remove(ctx, accounts, key("", acme), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State, "%v", op.Peers.Err())
	r.audited(t, c)
}
