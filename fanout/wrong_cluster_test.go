// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// misled returns a directory of the peers of own. But the peers that the parameter wrong lists
// lead to the clusters of the same names in the ring other.
func misled(t testing.TB, own, other *regiontest.Ring, wrong ...region.PeerName) region.Directory {
	t.Helper()
	var conns []*region.Conn
	for _, p := range peers {
		at := own
		for _, w := range wrong {
			if w == p {
				at = other
			}
		}
		creds, err := region.FromConfig(at.Server(p).Config())
		require.NoError(t, err)
		conn, err := region.NewConn(region.Peer{Name: p, Credentials: creds}, region.ConnOptions{})
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	return region.Fixed(conns...)
}

// forgetRing turns the PeerSets of a ring into PeerSets of the first release, without a ring ID.
func forgetRing(t testing.TB, r *regiontest.Ring) {
	t.Helper()
	sets := v1alpha1.GroupVersion.WithResource("peersets")
	for _, p := range peers {
		client := conn(t, r, p).Dynamic().Resource(sets)
		set, err := client.Get(t.Context(), v1alpha1.PeerSetName, metav1.GetOptions{})
		require.NoError(t, err)
		spec := set.Object["spec"].(map[string]any)
		if spec["ring"] == nil {
			continue
		}
		require.NoError(t, client.Delete(t.Context(), v1alpha1.PeerSetName, metav1.DeleteOptions{}))
		delete(spec, "ring")
		set.SetResourceVersion("")
		set.SetUID("")
		_, err = client.Create(t.Context(), set, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

func conn(t testing.TB, d region.Directory, peer region.PeerName) *region.Conn {
	t.Helper()
	c, err := d.Conn(peer)
	require.NoError(t, err)
	return c
}

// forEachAge runs a test with rings of this release, and with rings of the first release.
func forEachAge(t *testing.T, test func(t *testing.T, age func(*regiontest.Ring))) {
	t.Run("with ring IDs", func(t *testing.T) { test(t, func(*regiontest.Ring) {}) })
	t.Run("without", func(t *testing.T) { test(t, func(r *regiontest.Ring) { forgetRing(t, r) }) })
}

// The credentials of a coordinator for one peer lead to the peer of the same name in another ring.
// An add, two removals, an update and a sweep by that coordinator delete no ServiceCluster and no
// Account in the other two peers, and write nothing to the other ring.
func TestAWrongClusterMakesNoSecondOwner(t *testing.T) {
	forEachAge(t, func(t *testing.T, age func(*regiontest.Ring)) {
		own, other := newRing(t), newRing(t)
		c := coordinator(t, own, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)
		abroad := coordinator(t, other, waltest.NewMemory(), fanout.Options{})
		_, err = abroad.Add(t.Context(), newAccount(acme), fanout.AddOptions{})
		require.NoError(t, err)
		require.NoError(t, c.Wait(t.Context()))
		require.NoError(t, abroad.Wait(t.Context()))
		age(own)
		age(other)
		reset := func() {
			for _, p := range peers {
				own.Server(p).Reset()
				other.Server(p).Reset()
			}
		}
		reset()
		m := coordinator(t, misled(t, own, other, "us-east"), waltest.NewMemory(), fanout.Options{})

		// The primary of db is in us-east. The other ring's us-east does not have it: if that
		// answer counted, the guards of db would be dead.
		_, err = m.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
		require.ErrorIs(t, err, fanout.ErrAborted)
		requireWrong(t, err, "us-east")
		_, err = m.Remove(t.Context(), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.Error(t, err)
		_, err = m.Remove(t.Context(), accounts, key("", acme), fanout.RemoveOptions{})
		require.Error(t, err)
		_, err = m.Update(t.Context(), newAccount(acme, "Provider"), fanout.AddOptions{})
		if err != nil {
			requireWrong(t, err, "us-east")
		}
		_, err = m.Sweep(t.Context())
		requireWrong(t, err, "us-east")
		for _, p := range peers {
			for _, request := range other.Server(p).Requests() {
				require.Equal(t, http.MethodGet, request.Method, "in %s of another ring: %s", p, request.Path)
			}
		}
		for _, p := range []region.PeerName{"ap-south", "eu-west"} {
			for _, request := range own.Server(p).Requests() {
				if request.Verb == "delete" {
					require.NotContains(t, request.Path, "/serviceclusters/", "%s", p)
					require.NotContains(t, request.Path, "/accounts/", "%s", p)
				}
			}
		}
		explained, err := m.ExplainName(t.Context(), serviceClusters, key(acme, "db"))
		require.NoError(t, err)
		for _, p := range explained.Peers {
			if p.Peer == "us-east" {
				requireWrong(t, p.Err, "us-east")
			} else {
				require.NotContains(t, p.Judgement, "dead", "%s", p.Peer)
			}
		}
		_, err = c.Sweep(t.Context())
		require.NoError(t, err)
		requireClean(t, c)
		requireClean(t, abroad)
	})
}

func requireWrong(t testing.TB, err error, peer region.PeerName) {
	t.Helper()
	require.ErrorIs(t, err, fanout.ErrWrongPeer)
	require.ErrorContains(t, err, "the cluster behind peer "+string(peer))
	require.ErrorContains(t, err, "correct the peer's credentials")
}

// If the credentials for one peer lead to another ring, an audit with repair deletes no guard, and
// creates nothing in the cluster of the other ring.
func TestARepairBesideAWrongCluster(t *testing.T) {
	forEachAge(t, func(t *testing.T, age func(*regiontest.Ring)) {
		own, other := newRing(t), newRing(t)
		c := coordinator(t, own, waltest.NewMemory(), fanout.Options{})
		acme := addAccount(t, c)
		for _, p := range peers {
			_, err := c.Add(t.Context(), newServiceCluster(acme, "db-"+string(p)), fanout.AddOptions{Target: p, Durable: true})
			require.NoError(t, err)
		}
		require.NoError(t, c.Wait(t.Context()))
		age(own)
		age(other)
		for _, p := range peers {
			own.Server(p).Reset()
			other.Server(p).Reset()
		}
		m := coordinator(t, misled(t, own, other, "eu-west"), waltest.NewMemory(), fanout.Options{})
		report, err := m.Audit(t.Context(), true)
		require.NoError(t, err)
		for o := range report.Unread.All() {
			if o.Peer == "eu-west" {
				requireWrong(t, o.Err, "eu-west")
			} else {
				require.NoError(t, o.Err)
			}
		}
		require.Zero(t, writes(own))
		require.Zero(t, writes(other))
		requireClean(t, c)
	})
}

// Two peers that contradict each other are both distrusted, and both are named.
func TestTwoPeersOfDifferentRings(t *testing.T) {
	for _, ids := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			own, other := newRing(t), newRing(t)
			if !ids {
				forgetRing(t, own)
				forgetRing(t, other)
			}
			own.Server("ap-south").Inject(regiontest.Fault{Times: -1, Do: regiontest.DropRequest()})
			m := coordinator(t, misled(t, own, other, "us-east"), waltest.NewMemory(), fanout.Options{CallTimeout: 5 * time.Second})
			_, err := m.Sweep(t.Context())
			require.ErrorIs(t, err, fanout.ErrWrongPeer)
			require.ErrorContains(t, err, "behind peer us-east")
			require.ErrorContains(t, err, "behind peer eu-west")
			require.ErrorContains(t, err, "none is believed")
		})
	}
}

// A wrong cluster answers long before the other peers. It is not trusted before they have
// answered, nor afterwards.
func TestAWrongClusterThatAnswersFirst(t *testing.T) {
	for _, ids := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			own, other := newRing(t), newRing(t)
			c := coordinator(t, own, waltest.NewMemory(), fanout.Options{})
			acme := addAccount(t, c)
			require.NoError(t, c.Wait(t.Context()))
			if !ids {
				forgetRing(t, own)
				forgetRing(t, other)
			}
			for _, p := range peers {
				other.Server(p).Reset()
				own.Server(p).Inject(regiontest.Fault{Times: -1, Do: regiontest.Delay(400 * time.Millisecond)})
			}
			m := coordinator(t, misled(t, own, other, "us-east"), waltest.NewMemory(), fanout.Options{})
			done := make(chan error)
			go func() { done <- m.Identity().Recognize(t.Context(), "eu-west") }()
			time.Sleep(100 * time.Millisecond)
			requireWrong(t, m.Identity().Recognize(t.Context(), "us-east"), "us-east")
			require.NoError(t, <-done)
			_, err := m.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "eu-west"})
			requireWrong(t, err, "us-east")
			require.Zero(t, writes(other))
		})
	}
}
