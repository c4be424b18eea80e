// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Each read requests the PeerSet, but decodes it only if it has changed. PeerSets with equal lists
// of members share one list in memory.
func TestSetReader(t *testing.T) {
	t.Parallel()
	ring := regiontest.NewRing("eu", "us")
	t.Cleanup(ring.Close)
	conn := func(peer region.PeerName) *region.Conn {
		c, err := ring.Conn(peer)
		require.NoError(t, err)
		return c
	}
	s := newSetReader()
	_, err := s.read(t.Context(), conn("eu"))
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.False(t, isAbsent(err), "a resource that is not served is not an object that is not there: %v", err)

	crd, err := config.CRD("peersets.fanout.atoll.dev")
	require.NoError(t, err)
	require.NoError(t, ring.AddCRDs(crd))
	_, err = s.read(t.Context(), conn("eu"))
	require.True(t, isAbsent(err), "%v", err)

	cs := &clusters{sets: s}
	members := []v1alpha1.Member{{Peer: "eu", UID: "1", State: v1alpha1.PeerActive}, {Peer: "us", UID: "2", State: v1alpha1.PeerActive}}
	for _, peer := range []region.PeerName{"eu", "us"} {
		_, err := cs.createPeerSet(t.Context(), conn(peer), "r", members)
		require.NoError(t, err)
	}
	first, err := s.read(t.Context(), conn("eu"))
	require.NoError(t, err)
	require.Equal(t, members, first.Spec.Members)
	require.Equal(t, "eu", first.view.Self.Peer)
	require.Equal(t, []protocol.Member{{Peer: "eu", UID: "1", State: "Active"}, {Peer: "us", UID: "2", State: "Active"}}, first.view.Members)
	ring.Server("eu").Reset()
	again, err := s.read(t.Context(), conn("eu"))
	require.NoError(t, err)
	require.Same(t, first, again)
	require.Len(t, ring.Server("eu").Requests(), 1)
	other, err := s.read(t.Context(), conn("us"))
	require.NoError(t, err)
	require.Same(t, &first.view.Members[0], &other.view.Members[0])
	require.Equal(t, "us", other.view.Self.Peer)

	client := conn("eu").Dynamic().Resource(peerSets)
	obj, err := client.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(obj.Object, "Leaving", "spec", "self", "state"))
	require.NoError(t, unstructured.SetNestedField(obj.Object, int64(2), "spec", "epoch"))
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	now, err := s.read(t.Context(), conn("eu"))
	require.NoError(t, err)
	require.Equal(t, "Leaving", now.view.Self.State)
	require.NotEqual(t, first.view.RV, now.view.RV)
	require.Equal(t, "Active", first.view.Self.State, "a returned PeerSet does not change")

	ring.Server("eu").Inject(regiontest.Fault{Verb: "get", Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	_, err = s.read(t.Context(), conn("eu"))
	require.Equal(t, protocol.Unavailable, classifyRead(err))
	ring.Partition("eu", true)
	_, err = s.read(t.Context(), conn("eu"))
	require.ErrorIs(t, err, region.ErrUnavailable)

	// If another cluster gets the peer's name, a read asks that cluster and does not return the
	// known PeerSet.
	server := regiontest.NewServer(regiontest.Options{Name: "eu-2"})
	t.Cleanup(server.Close)
	require.NoError(t, server.AddCRD(crd))
	require.NoError(t, ring.Join("eu", server))
	_, err = s.read(t.Context(), conn("eu"))
	require.True(t, isAbsent(err), "%v", err)
}
