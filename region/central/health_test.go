// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// An unreachable peer is reported within a second after the Ring has noticed, and keeps its regions, even over a
// restart of the program. After that nothing more is written. One dead peer delays no other.
func TestUnreachablePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.register("eu")
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		require.Equal(t, []string{"eu-west-1.loodse"}, p.served("eu"))
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)

		w.servers["eu"].Partition(true)
		for conn.Health().State == region.Healthy {
			pass(100 * time.Millisecond)
		}
		pass(900 * time.Millisecond)
		require.Equal(t, "False Unreachable", w.ready("eu"))
		require.Equal(t, masterv1alpha1.PeerNotReady, w.get("eu").Status.Phase)
		contact := conn.Health().LastContact
		require.Equal(t, contact.Unix(), w.get("eu").Status.LastContact.Unix())
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
		require.Equal(t, []string{"eu-west-1.loodse"}, p.served("eu"))

		// A restarted program cannot reach the peer either, and does not change its regions.
		p.stop()
		p = w.start(PeersOptions{})
		w.register("us")
		pass(time.Second)
		require.Equal(t, "True Reachable", w.ready("us"))
		require.Equal(t, "False Unreachable", w.ready("eu"))
		pass(time.Hour)
		require.Equal(t, "False Unreachable", w.ready("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, p.served("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))

		w.servers["eu"].Partition(false)
		w.claim(w.servers["eu"], "loodse", "eu-west-2", "Bound")
		pass(2 * time.Minute)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, []string{"eu-west-1.loodse", "eu-west-2.loodse"}, p.served("eu"))
	})
}

// A peer that hangs from the beginning does not delay the others, and is inspected with a backoff.
func TestHangingPeerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
		w := newWorld(t, names...)
		dead := names[:7] // one worker stays free
		for _, name := range dead {
			w.servers[name].Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
		}
		w.register(names...)
		w.start(PeersOptions{})
		pass(2 * time.Second)
		for _, name := range names[7:] {
			require.Equal(t, "True Reachable", w.ready(name))
		}
		pass(2 * time.Minute)
		for _, name := range dead {
			require.Equal(t, "False Unreachable", w.ready(name))
		}
		before := len(w.servers["a"].Requests())
		w.plane.Reset()
		pass(10 * time.Minute)
		require.Less(t, len(w.servers["a"].Requests())-before, 40)
		require.Empty(t, writes(w.plane))
	})
}

// Rejected credentials are distinguished from an unreachable peer, and new ones are used at once.
func TestCredentialsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("eu", regiontest.Options{
			Name: "eu", Definitions: definitions(t, carrierCRD, claimCRD), Tokens: map[string]regiontest.User{"good": {Name: "atoll"}, "better": {Name: "atoll"}},
		})
		w.secret("eu-kubeconfig", "eu bad")
		w.peer("eu", "eu-kubeconfig")
		p := w.start(PeersOptions{})
		pass(10 * time.Minute)
		require.Equal(t, "False CredentialsRejected", w.ready("eu"))
		require.Equal(t, "True Accepted", w.conditionOf("eu", masterv1alpha1.PeerConditionKubeconfigValid))
		w.secret("eu-kubeconfig", "eu good")
		pass(time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))

		// A new kubeconfig whose credentials are rejected is not used; the old one stays in use.
		w.secret("eu-kubeconfig", "eu bad")
		pass(time.Second)
		require.Equal(t, "False CredentialsRejected", w.conditionOf("eu", masterv1alpha1.PeerConditionKubeconfigValid))
		require.Equal(t, "True Reachable", w.conditionOf("eu", masterv1alpha1.PeerConditionReachable))
		w.secret("eu-kubeconfig", "eu better")
		pass(time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))

		// All requests are rejected: the condition stays, and the peer recovers soon after the next Secret.
		w.servers["eu"].Inject(regiontest.Fault{Times: -1, Do: regiontest.Refuse(http.StatusUnauthorized)})
		pass(10 * time.Minute)
		require.Equal(t, "False CredentialsRejected", w.ready("eu"))
		require.Equal(t, 1, p.ring.Snapshot().Len())
		w.servers["eu"].Reset()
		w.secret("eu-kubeconfig", "eu good")
		pass(3 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
	})
}

// The reason changes when an unreachable peer is reachable again but rejects the credentials, and when such a
// peer becomes unreachable.
func TestSilentThenRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		w.start(PeersOptions{})
		pass(2 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
		w.servers["eu"].Partition(true)
		pass(10 * time.Minute)
		require.Equal(t, "False Unreachable", w.ready("eu"))
		w.servers["eu"].Inject(regiontest.Fault{Times: -1, Do: regiontest.Refuse(http.StatusUnauthorized)})
		w.servers["eu"].Partition(false)
		pass(10 * time.Minute)
		require.Equal(t, "False CredentialsRejected", w.ready("eu"))
		w.servers["eu"].Partition(true)
		pass(10 * time.Minute)
		require.Equal(t, "False Unreachable", w.ready("eu"))
	})
}

// The first changes of a flapping peer are written at once, the later ones at a limited rate.
func TestFlappingMakesNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		w.start(PeersOptions{})
		pass(2 * time.Second)
		w.plane.Reset()
		const rounds = 500
		for i := range rounds {
			w.claim(w.servers["eu"], "loodse", "eu-west-1", []string{"Bound", "Pending"}[i%2])
			pass(time.Second)
		}
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		pass(time.Minute)
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))
		require.Less(t, len(writes(w.plane)), rounds/int(budgetInterval.Seconds())+2*budgetSize)
		require.Greater(t, len(writes(w.plane)), rounds/int(budgetInterval.Seconds())/2)
	})
}
