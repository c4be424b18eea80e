// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// newReader returns a runner for an object that no peer of ring has. The peers eu and us list
// each other as members.
func newReader(t *testing.T, ring *regiontest.Ring) *runner {
	t.Helper()
	t.Cleanup(ring.Close)
	crd, err := config.CRD("peersets.fanout.atoll.dev")
	require.NoError(t, err)
	require.NoError(t, ring.AddCRDs(crd))
	opts := &Options{CallTimeout: time.Minute}
	cs := &clusters{opts: opts, directory: ring, identities: newIdentities(), sets: newSetReader()}
	var members []v1alpha1.Member
	for _, peer := range []region.PeerName{"eu", "us"} {
		conn, err := ring.Conn(peer)
		require.NoError(t, err)
		m, err := cs.ask(t.Context(), conn)
		require.NoError(t, err)
		members = append(members, v1alpha1.Member{Peer: string(peer), UID: m.uid, State: v1alpha1.PeerActive})
	}
	for _, peer := range []region.PeerName{"eu", "us"} {
		conn, err := ring.Conn(peer)
		require.NoError(t, err)
		_, err = cs.createPeerSet(t.Context(), conn, "ring", members)
		require.NoError(t, err)
	}
	x := &executor{opts: opts, clusters: cs}
	return x.runner(Kind{Resource: peerSets}, types.NamespacedName{Name: "none"}, nil, journal{})
}

func perform(t *testing.T, r *runner, command protocol.Command) (protocol.Reply, error) {
	t.Helper()
	var attempt region.Attempt
	return r.perform(region.WithAttempt(t.Context(), &attempt), &attempt, command, logWrite{})
}

// The credentials of peer us lead to a cluster of another ring. A read and a delete of an object in
// us return ErrWrongPeer, and that cluster gets no request for the object.
func TestNothingIsAskedOfAClusterBeforeItIsKnown(t *testing.T) {
	t.Parallel()
	ring, other := regiontest.NewRing("eu", "us"), regiontest.NewRing("eu", "us")
	newReader(t, other)
	r := newReader(t, ring)
	require.NoError(t, ring.Join("us", other.Server("eu")))
	for _, verb := range []protocol.Verb{protocol.Read, protocol.Delete} {
		other.Server("eu").Reset()
		reply, err := perform(t, r, protocol.Command{Verb: verb, Peer: "us"})
		require.ErrorIs(t, err, ErrWrongPeer)
		require.Equal(t, protocol.NotApplied, reply.Class)
		require.NotEqual(t, protocol.NotFound, reply.Code)
		for _, request := range other.Server("eu").Requests() {
			require.NotContains(t, request.Path, "none")
		}
	}
}

// A peer is found to be the wrong cluster while it delays the answer to a read. The read returns
// ErrWrongPeer instead of "not found".
func TestAClusterThatIsRefutedWhileItAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("eu", "us")
		r := newReader(t, ring)
		reply, err := perform(t, r, protocol.Command{Verb: protocol.Read, Peer: "us"})
		require.NoError(t, err)
		require.Equal(t, protocol.NotFound, reply.Code)
		conn, err := ring.Conn("us")
		require.NoError(t, err)
		ring.Server("us").Inject(regiontest.Fault{Name: "none", Do: regiontest.Delay(time.Second)})
		time.AfterFunc(time.Second/2, func() { r.executor.clusters.identities.note(meeting{conn: conn, uid: "another"}) })
		reply, err = perform(t, r, protocol.Command{Verb: protocol.Read, Peer: "us"})
		require.ErrorIs(t, err, ErrWrongPeer)
		require.NotEqual(t, protocol.NotFound, reply.Code)
	})
}
