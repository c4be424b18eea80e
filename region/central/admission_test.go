// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// An installation that is a master is refused: existing connections end, and it serves no region. Exception: the
// plane's own Peer local.
func TestMasterIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.carrier(w.plane, "kubecarrier", true, nil)
		w.carrier(w.servers["us"], "kubecarrier", true, nil)
		w.carrier(w.servers["eu"], "kubecarrier", false, nil)
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		w.peer("local", "")
		w.register("eu", "us")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		require.Equal(t, "True Reachable", w.ready("local"))
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, "False IsMaster", w.ready("us"))
		require.Equal(t, "False IsMaster", w.conditionOf("us", masterv1alpha1.PeerConditionRegionsUnique))
		require.Equal(t, "True Reachable", w.conditionOf("us", masterv1alpha1.PeerConditionReachable))
		_, err := p.ring.Conn("us")
		require.ErrorContains(t, err, "IsMaster")

		eu, err := p.ring.Conn("eu")
		require.NoError(t, err)
		w.carrier(w.servers["eu"], "kubecarrier", true, nil)
		pass(time.Second)
		require.Equal(t, "False IsMaster", w.ready("eu"))
		require.Empty(t, w.regions("eu"))
		require.Empty(t, p.served("eu"))
		require.Equal(t, 3, p.ring.Snapshot().Len())
		_, err = eu.Dynamic().Resource(namespaceResource).Get(t.Context(), "default", metav1.GetOptions{})
		require.ErrorIs(t, err, region.ErrUnknownPeer)
		w.plane.Reset()
		w.servers["eu"].Reset()
		w.servers["us"].Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane, w.servers["eu"], w.servers["us"]))
		require.Less(t, len(w.servers["eu"].Requests()), 4*60*60/int(lookInterval.Seconds())+10, "it is inspected rarely")

		w.carrier(w.servers["eu"], "kubecarrier", false, nil)
		pass(2 * lookInterval)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, p.served("eu"))

		// A Peer with another name for the plane itself is refused.
		w.servers["plane"] = w.plane
		w.register("plane")
		pass(time.Second)
		require.Equal(t, "False IsMaster", w.ready("plane"))
		require.Equal(t, "True Reachable", w.ready("local"))
	})
}

// Before acceptance, a cluster receives only the requests of the inspection.
func TestNothingIsSentBeforeAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "us")
		w.carrier(w.servers["us"], "kubecarrier", true, nil)
		w.servers["us"].Reset()
		w.register("us")
		w.start(PeersOptions{})
		pass(10 * time.Second)
		require.Equal(t, "False IsMaster", w.ready("us"))
		for _, r := range w.servers["us"].Requests() {
			require.Contains(t, []string{"get", "list"}, r.Verb)
			require.NotContains(t, r.Path, "readyz", "no probe of a Ring")
		}
	})
}

// Of two Peers for one cluster the younger is refused, and its message names the other. It is accepted once the other
// is deleted.
func TestSameCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		w.secret("copy-kubeconfig", "eu other-token")
		w.peer("copy", "copy-kubeconfig")
		w.peer("again", "eu-kubeconfig")
		pass(2 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
		for _, name := range []string{"copy", "again"} {
			require.Equal(t, "False SameCluster", w.ready(name))
			require.Contains(t, w.message(name, masterv1alpha1.PeerConditionRegionsUnique), "Peer eu reaches the same cluster")
			_, err := p.ring.Conn(region.PeerName(name))
			require.ErrorContains(t, err, "SameCluster")
		}
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
		w.deletePeer("eu")
		// If both were accepted for a moment, the remaining Peer becomes healthy a few probes later.
		pass(time.Minute)
		ready := map[string]bool{w.ready("copy"): true, w.ready("again"): true}
		require.Equal(t, map[string]bool{"True Reachable": true, "False SameCluster": true}, ready)
	})
}

// If several Peers of one cluster appear at once, exactly one is accepted.
func TestSameClusterAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.secret("kubeconfig", "eu")
		names := []string{"a", "b", "c", "d", "e", "f"}
		for _, name := range names {
			w.peer(name, "kubeconfig")
		}
		w.start(PeersOptions{})
		pass(time.Minute)
		accepted := 0
		for _, name := range names {
			switch w.ready(name) {
			case "True Reachable":
				accepted++
			default:
				require.Equal(t, "False SameCluster", w.ready(name))
			}
		}
		require.Equal(t, 1, accepted)
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
	})
}

// A cluster without our types, or without the right to read them, is not accepted. If types are missing later, only
// conditions change.
func TestTypesAndRightsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("eu", regiontest.Options{Name: "eu"})
		us := w.add("us", regiontest.Options{Name: "us", Definitions: definitions(t, carrierCRD, claimCRD)})
		claims := claimResource.GroupResource()
		us.Inject(regiontest.Fault{Resource: claims, Times: -1, Do: regiontest.Refuse(http.StatusForbidden)})
		w.register("eu", "us")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		require.Equal(t, "False CRDsMissing", w.ready("eu"))
		require.Equal(t, "False RightsMissing", w.ready("us"))
		require.Empty(t, w.get("eu").Status.ClusterUID)
		for _, crd := range crds(t, carrierCRD, claimCRD) {
			require.NoError(t, w.servers["eu"].AddCRD(crd))
		}
		us.Reset()
		pass(2 * lookInterval)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, "True Reachable", w.ready("us"))

		w.claim(us, "loodse", "us-east-1", "Bound")
		pass(time.Second)
		us.Inject(regiontest.Fault{Resource: claims, Times: -1, Do: regiontest.Refuse(http.StatusNotFound)})
		us.Partition(true) // ends the watch
		us.Partition(false)
		pass(time.Minute)
		require.Equal(t, "False CRDsMissing", w.ready("us"))
		require.Equal(t, []string{"us-east-1.loodse"}, p.served("us"))
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
		us.Reset()
		pass(time.Minute)
		require.Equal(t, "True Reachable", w.ready("us"))
	})
}

// A kubeconfig that was changed to reach another cluster while no program ran is not used: only the UID of the other cluster
// is read. A deleted and recreated Peer of the same name may be another cluster.
func TestOtherClusterAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.register("eu")
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		p := w.start(PeersOptions{})
		pass(2 * time.Second)
		before, err := p.ring.Conn("eu")
		require.NoError(t, err)
		p.stop()
		w.secret("eu-kubeconfig", "us")
		w.servers["us"].Reset()
		p = w.start(PeersOptions{})
		pass(time.Minute)
		require.Equal(t, "False OtherCluster", w.conditionOf("eu", masterv1alpha1.PeerConditionKubeconfigValid))
		require.Equal(t, "False OtherCluster", w.ready("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, w.regions("eu"))
		for _, r := range w.servers["us"].Requests() {
			require.Equal(t, "/api/v1/namespaces/kube-system", r.Path)
		}

		p.stop()
		w.plane.Reset()
		p = w.start(PeersOptions{})
		pass(time.Hour)
		require.Empty(t, writes(w.plane), "a restarted program changes nothing")

		w.deletePeer("eu")
		w.peer("eu", "eu-kubeconfig")
		pass(2 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Empty(t, w.regions("eu"))
		conn, err := p.ring.Conn("eu")
		require.NoError(t, err)
		uid, err := conn.UID(t.Context())
		require.NoError(t, err)
		require.Equal(t, w.get("eu").Status.ClusterUID, uid)
		old, err := before.UID(t.Context())
		require.NoError(t, err)
		require.NotEqual(t, old, uid)
	})
}
