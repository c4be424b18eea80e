// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

// The manifests of the multi-region proposal lead to the statuses that the proposal shows.
func TestStatusOfTheProposal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu-west", "us-east")
		w.carrier(w.plane, "kubecarrier", true, map[string]any{versionLabel: "v0.2.0"})
		w.peer("local", "")
		w.register("eu-west", "us-east")
		for _, c := range [][2]string{{"loodse", "eu-west-1"}, {"loodse", "eu-west-2"}, {"not-loodse", "eu-west-1"}} {
			w.claim(w.servers["eu-west"], c[0], c[1], "Bound")
		}
		for _, c := range [][2]string{{"loodse", "us-east-1"}, {"not-loodse", "us-east-1"}} {
			w.claim(w.servers["us-east"], c[0], c[1], "Bound")
		}
		w.claim(w.servers["us-east"], "loodse", "eu-west-2", "Conflict")
		w.claim(w.servers["us-east"], "loodse", "pending-1", "Pending")
		p := w.start(PeersOptions{})
		pass(5 * time.Second)

		local := w.get("local").Status
		require.Equal(t, masterv1alpha1.PeerReady, local.Phase)
		require.Equal(t, "v0.2.0", local.KubeCarrierVersion.Version)
		require.Empty(t, local.Regions)
		require.Equal(t, []string{"eu-west-1.loodse", "eu-west-2.loodse", "eu-west-1.not-loodse"}, w.regions("eu-west"))
		require.Equal(t, []string{"us-east-1.loodse", "us-east-1.not-loodse"}, w.regions("us-east"))
		for _, name := range []string{"local", "eu-west", "us-east"} {
			peer := w.get(name)
			require.Equal(t, masterv1alpha1.PeerReady, peer.Status.Phase, "%s", name)
			require.Equal(t, peer.Generation, peer.Status.ObservedGeneration)
			require.Equal(t, "True Reachable", w.ready(name))
			require.Equal(t, "True Reachable", w.conditionOf(name, masterv1alpha1.PeerConditionReachable))
			require.Equal(t, "True Accepted", w.conditionOf(name, masterv1alpha1.PeerConditionKubeconfigValid))
			require.Equal(t, "True Unique", w.conditionOf(name, masterv1alpha1.PeerConditionRegionsUnique))
			require.NotEmpty(t, peer.Status.KubeCarrierVersion.Version)
			require.NotEmpty(t, peer.Status.ClusterUID)
			require.False(t, peer.Status.LastContact.IsZero())
			for _, c := range peer.Status.Conditions {
				require.Equal(t, peer.Generation, c.ObservedGeneration)
				require.False(t, c.LastTransitionTime.IsZero())
			}
			require.Equal(t, w.regions(name) == nil, p.served(region.PeerName(name)) == nil)
		}
		require.Equal(t, []string{"eu-west-1.loodse", "eu-west-2.loodse", "eu-west-1.not-loodse"}, p.served("eu-west"))

		// At rest the probes cause no writes.
		for _, s := range w.servers {
			s.Reset()
		}
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane, w.servers["eu-west"], w.servers["us-east"]))

		// A restarted program changes nothing.
		p.stop()
		p = w.start(PeersOptions{})
		pass(time.Hour)
		require.Empty(t, writes(w.plane, w.servers["eu-west"], w.servers["us-east"]))
		require.Equal(t, []string{"us-east-1.loodse", "us-east-1.not-loodse"}, p.served("us-east"))
	})
}
