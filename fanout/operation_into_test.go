// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// Into makes the object of an operation a typed one with the claim and the version that the operation wrote, also if an
// earlier operation had the same effect. It replaces the whole target.
func TestInto(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	acme := addAccount(t, c)
	apply(t, clustersIn(t, r, "us-east", acme), newServiceCluster(acme, "db"))
	for _, done := range []bool{false, true} {
		op, err := c.Adopt(t.Context(), "us-east", serviceClusters, key(acme, "db"))
		require.NoError(t, err)
		require.Equal(t, done, op.AlreadyDone)
		db := &v1alpha1.ServiceCluster{}
		db.Spec.Metadata.Description = "of the caller"
		require.NoError(t, op.Into(db))
		require.Equal(t, op.UID, db.UID)
		require.Equal(t, read(t, clustersIn(t, r, "us-east", acme), "db").GetResourceVersion(), db.ResourceVersion)
		require.Equal(t, "us-east", db.Spec.Fanout.Claim.Target)
		require.Empty(t, db.Spec.Metadata.Description)
		require.ErrorContains(t, op.Into(&other{}), "fanout: convert ServiceCluster to *fanout_test.other: ")
	}
	op, err := c.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.EqualError(t, op.Into(&v1alpha1.ServiceCluster{}), "fanout: the operation has no object: read the object from its peer")
}

// other is a type whose spec is not an object.
type other struct {
	v1alpha1.ServiceCluster `json:"-"`

	Spec string `json:"spec"`
}
