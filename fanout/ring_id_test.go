// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// ringIDs returns the IDs in the PeerSets, by peer; empty without an ID.
func ringIDs(t testing.TB, r *regiontest.Ring) map[region.PeerName]string {
	t.Helper()
	ids := map[region.PeerName]string{}
	for _, p := range peers {
		set, err := conn(t, r, p).Dynamic().Resource(v1alpha1.GroupVersion.WithResource("peersets")).Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
		require.NoError(t, err)
		ids[p], _, err = unstructured.NestedString(set.Object, "spec", "ring")
		require.NoError(t, err)
	}
	return ids
}

// oneRing requires that all members have the same ID, and returns it.
func oneRing(t testing.TB, r *regiontest.Ring) string {
	t.Helper()
	ids := ringIDs(t, r)
	for _, p := range peers {
		require.NotEmpty(t, ids[p], "%v", ids)
		require.Equal(t, ids["ap-south"], ids[p], "%v", ids)
	}
	return ids["ap-south"]
}

func TestInitPeersMakesTheRingsID(t *testing.T) {
	r := newRing(t)
	id := oneRing(t, r)
	require.NoError(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}).InitPeers(t.Context()))
	require.Equal(t, id, oneRing(t, r))
	require.NotEqual(t, id, oneRing(t, newRing(t)))
}

// Processes that initialise a ring concurrently make one ring. If they fail before the end, the
// next process completes that ring.
func TestInitPeersOfSeveralProcesses(t *testing.T) {
	r := regiontest.NewRing(peers...)
	t.Cleanup(r.Close)
	require.NoError(t, r.AddDefinitions(definitions(t)))
	// us-east rejects PeerSets at first.
	r.Server("us-east").Inject(regiontest.Fault{Times: 3, Verb: "create", Resource: v1alpha1.Resource("peersets"), Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_ = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).InitPeers(t.Context())
		})
	}
	wg.Wait()
	require.NoError(t, coordinator(t, r, waltest.NewMemory(), fanout.Options{}).InitPeers(t.Context()))
	oneRing(t, r)
}

// A ring of the first release gets one ID from the next sweeps, even if several sweeps run
// concurrently. Later sweeps do not write the ID again.
func TestASweepMakesTheRingsID(t *testing.T) {
	r := newRing(t)
	forgetRing(t, r)
	require.Equal(t, map[region.PeerName]string{"ap-south": "", "eu-west": "", "us-east": ""}, ringIDs(t, r))
	// The first sweep fails before it has copied the ID to all members.
	r.Server("us-east").Inject(regiontest.Fault{Times: 1, Verb: "update", Resource: v1alpha1.Resource("peersets"), Do: regiontest.Refuse(http.StatusServiceUnavailable)})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, _ = coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Sweep(t.Context())
		})
	}
	wg.Wait()
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err := c.Sweep(t.Context())
	require.NoError(t, err)
	oneRing(t, r)
	for _, p := range peers {
		r.Server(p).Reset()
	}
	_, err = c.Sweep(t.Context())
	require.NoError(t, err)
	require.Zero(t, writes(r))
}

// If no coordinator runs Start, no sweeps run: then an audit with repair makes the ring's ID. An
// audit without repair writes nothing.
func TestARepairMakesTheRingsID(t *testing.T) {
	r := newRing(t)
	forgetRing(t, r)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	none := map[region.PeerName]string{"ap-south": "", "eu-west": "", "us-east": ""}
	_, err := c.Audit(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, none, ringIDs(t, r))
	_, err = c.Audit(t.Context(), true)
	require.NoError(t, err)
	oneRing(t, r)
	for _, p := range peers {
		r.Server(p).Reset()
	}
	_, err = c.Audit(t.Context(), true)
	require.NoError(t, err)
	require.Zero(t, writes(r))
}

// A sweep makes no ring ID while a member does not answer, because that member may have an ID.
func TestNoRingIDIsMadeWithoutAllMembers(t *testing.T) {
	r := newRing(t)
	forgetRing(t, r)
	r.Server("eu-west").Inject(regiontest.Fault{Times: -1, Resource: v1alpha1.Resource("peersets"), Do: regiontest.Refuse(http.StatusInternalServerError)})
	_, err := coordinator(t, r, waltest.NewMemory(), fanout.Options{}).Sweep(t.Context())
	require.Error(t, err)
	r.Server("eu-west").Reset()
	require.Equal(t, map[region.PeerName]string{"ap-south": "", "eu-west": "", "us-east": ""}, ringIDs(t, r))
}

// If members that list each other have different ring IDs, the error names them, and nothing is
// written.
func TestTwoRingIDsAreNamed(t *testing.T) {
	r := newRing(t)
	id := oneRing(t, r)
	setRing(t, r, "us-east", "other")
	setRing(t, r, "eu-west", "other")
	for _, p := range peers {
		r.Server(p).Reset()
	}
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err := c.Sweep(t.Context())
	require.ErrorIs(t, err, fanout.ErrOtherRing)
	require.ErrorContains(t, err, "the cluster behind peer ap-south belongs to ring "+id+", and eu-west, us-east to ring other")
	require.Zero(t, writes(r))
	_, err = c.Leave(t.Context(), "us-east")
	require.ErrorIs(t, err, fanout.ErrOtherRing)
	require.ErrorIs(t, err, fanout.ErrAborted)
	require.Zero(t, writes(r))
}

// setRing puts another ring's ID into a PeerSet.
func setRing(t testing.TB, r *regiontest.Ring, peer region.PeerName, id string) {
	t.Helper()
	client := conn(t, r, peer).Dynamic().Resource(v1alpha1.GroupVersion.WithResource("peersets"))
	set, err := client.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, client.Delete(t.Context(), v1alpha1.PeerSetName, metav1.DeleteOptions{}))
	set.Object["spec"].(map[string]any)["ring"] = id
	set.SetResourceVersion("")
	set.SetUID("")
	_, err = client.Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
}

// A peer of another ring does not join: the error names both rings and the peer, and
// nothing is written.
func TestAPeerOfAnotherRingDoesNotJoin(t *testing.T) {
	r := newRing(t)
	id := oneRing(t, r)
	c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
	_, err := c.Leave(t.Context(), "us-east")
	require.NoError(t, err)
	require.Equal(t, id, ringIDs(t, r)["us-east"], "a peer that has left keeps its ring")
	other := newRing(t)
	for _, p := range peers {
		r.Server(p).Reset()
		other.Server(p).Reset()
	}
	m := coordinator(t, misled(t, r, other, "us-east"), waltest.NewMemory(), fanout.Options{})
	for _, join := range []func() error{
		func() error { _, err := m.Join(t.Context(), "us-east"); return err },
		func() error { _, err := m.Comeback(t.Context(), "us-east"); return err },
	} {
		err = join()
		require.ErrorIs(t, err, fanout.ErrOtherRing)
		require.ErrorIs(t, err, fanout.ErrWrongPeer)
		require.ErrorIs(t, err, fanout.ErrAborted)
		require.ErrorContains(t, err, "us-east belongs to ring "+oneRing(t, other))
		require.ErrorContains(t, err, id)
	}
	require.Zero(t, writes(r))
	require.Zero(t, writes(other))
	_, err = c.Join(t.Context(), "us-east")
	require.NoError(t, err)
	require.Equal(t, id, oneRing(t, r))
}
