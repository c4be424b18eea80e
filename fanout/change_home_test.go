// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// requireUpdatable updates the account through c and requires its home to be one of homes.
func requireUpdatable(t *testing.T, c *fanout.Coordinator, name string, revision int64, homes ...region.PeerName) {
	t.Helper()
	op, err := c.Update(t.Context(), newAccount(name, []any{"Provider", "Tenant"}[revision%2]), fanout.AddOptions{})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, op.State)
	require.Equal(t, revision, op.Revision)
	require.Contains(t, homes, op.Primary)
	requireClean(t, c)
}

// requireAbsent fails the test unless peer has no account called name.
func requireAbsent(t *testing.T, r *regiontest.Ring, peer region.PeerName, name string) {
	t.Helper()
	conn, err := r.Conn(peer)
	require.NoError(t, err)
	_, err = conn.Dynamic().Resource(fanout.ServiceClusters().Within).Get(t.Context(), name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// TestAccountsMoveWithALeave lets the peer with the homes of Accounts leave. A leave that is
// refused moves no home.
func TestAccountsMoveWithALeave(t *testing.T) {
	r := servers(t, "ap-south", "eu-west", "us-east")
	three := of(t, r, "ap-south", "eu-west", "us-east")
	var names []string
	for range 5 {
		name := unique("acme")
		_, err := three.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "ap-south"})
		require.NoError(t, err)
		names = append(names, name)
	}
	_, err := three.Add(t.Context(), newServiceCluster(names[0], "db"), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)

	_, err = three.Leave(t.Context(), "ap-south")
	var blocked *fanout.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Len(t, blocked.Blocking, 1)
	require.Equal(t, key(names[0], "db"), blocked.Blocking[0].Key)
	requireClean(t, three)
	requireHome(t, r, names[0], "ap-south")
	_, err = three.Remove(t.Context(), serviceClusters, key(names[0], "db"), fanout.RemoveOptions{})
	require.NoError(t, err)

	change, err := three.Leave(t.Context(), "ap-south")
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	requireStates(t, change, map[region.PeerName]v1alpha1.PeerState{"ap-south": "Out", "eu-west": "Active", "us-east": "Active"})
	require.Empty(t, change.Left)
	two := of(t, r, "eu-west", "us-east")
	requireClean(t, two)
	for _, name := range names {
		requireAbsent(t, r, "ap-south", name)
		requireUpdatable(t, two, name, 2, "eu-west", "us-east")
	}
	_, err = two.Remove(t.Context(), accounts, key("", names[1]), fanout.RemoveOptions{})
	require.NoError(t, err)
	requireClean(t, two)

	_, err = three.Join(t.Context(), "ap-south")
	require.NoError(t, err)
	requireClean(t, three)
	requireUpdatable(t, three, names[0], 3, "eu-west", "us-east")
}

// TestAccountsOutliveTheirHome removes the peer with the homes of Accounts by force. The Accounts
// stay, with homes in other members.
func TestAccountsOutliveTheirHome(t *testing.T) {
	r := servers(t, "ap-south", "eu-west", "us-east")
	three := of(t, r, "ap-south", "eu-west", "us-east")
	var names []string
	for range 3 {
		name := unique("acme")
		_, err := three.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "ap-south"})
		require.NoError(t, err)
		names = append(names, name)
	}
	r.Partition("ap-south", true)
	two := of(t, r, "eu-west", "us-east")
	change, err := two.ForceRemove(t.Context(), "ap-south", fanout.ForceRemoveOptions{By: "alice"})
	require.NoError(t, err)
	require.Equal(t, fanout.Done, change.State)
	requireClean(t, two)
	for _, name := range names {
		requireUpdatable(t, two, name, 2, "eu-west", "us-east")
	}
	_, err = two.Remove(t.Context(), accounts, key("", names[1]), fanout.RemoveOptions{})
	require.NoError(t, err)
	requireClean(t, two)
}
