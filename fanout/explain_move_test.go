// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestExplainAMove(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "me/1"})
	name := unique("acme")
	op, err := c.Add(t.Context(), newAccount(name), fanout.AddOptions{Target: "ap-south"})
	require.NoError(t, err)
	yield(t, r, name, "ap-south", "eu-west")
	e, err := c.ExplainName(t.Context(), accounts, key("", name))
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, e.State)
	require.Equal(t, "move", e.Action)
	require.Contains(t, e.Text, "the object in ap-south has yielded to eu-west")
	require.Equal(t, map[region.PeerName]string{
		"ap-south": "yielded by The primary moves", "eu-west": "elect by The primary moves", "us-east": "replica by Judging a secondary",
	}, judged(t, e))
	e, err = c.Explain(t.Context(), op.ID)
	require.NoError(t, err)
	require.Equal(t, fanout.Committed, e.State)
	require.Equal(t, "add", e.Action)
	require.Equal(t, "me/1", e.Coordinator)
	traces, err := c.Traces(t.Context())
	require.NoError(t, err)
	require.Len(t, traces, 1)
	require.Equal(t, "move", traces[0].Action)
	require.Equal(t, region.PeerName("ap-south"), traces[0].Primary)
	require.Equal(t, []region.PeerName{"eu-west"}, traces[0].Peers)

	// The log of this coordinator does not have the operation.
	_, err = coordinator(t, r, waltest.NewMemory(), fanout.Options{Identity: "you/1"}).Resume(t.Context(), op.ID)
	require.NoError(t, err)
	traces, err = c.Traces(t.Context())
	require.NoError(t, err)
	require.Empty(t, traces)
	e, err = c.ExplainName(t.Context(), accounts, key("", name))
	require.NoError(t, err)
	require.Equal(t, fanout.Done, e.State)
	require.Equal(t, map[region.PeerName]string{
		"ap-south": "replica by Activation", "eu-west": "primary by I3", "us-east": "replica by Activation",
	}, judged(t, e))
}

func TestExplainDuringAChangeOfTheMembership(t *testing.T) {
	r := newRing(t)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	name := addAccount(t, c)
	e, err := c.ExplainName(t.Context(), accounts, key("", name))
	require.NoError(t, err)
	require.Empty(t, e.Changes)
	for _, peer := range []region.PeerName{"ap-south", "eu-west"} {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		sets := conn.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("peersets"))
		set, err := sets.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedMap(set.Object, map[string]any{
			"id": "change-1", "kind": "Leave", "peer": "us-east", "coordinator": "them/1", "anchor": "ap-south", "uid": "cluster",
		}, "spec", "change"))
		epoch, _, err := unstructured.NestedInt64(set.Object, "spec", "epoch")
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(set.Object, epoch+1, "spec", "epoch"))
		_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	e, err = c.ExplainName(t.Context(), accounts, key("", name))
	require.NoError(t, err)
	require.Equal(t, []fanout.Changing{{
		ID: "change-1", Kind: fanout.Leave, Peer: "us-east", Coordinator: "them/1", In: []region.PeerName{"ap-south", "eu-west"},
	}}, e.Changes)
}
