// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region/shard"
)

// fault begins or ends a fault.
type fault func(context.Context) error

// peerAway makes us-east unreachable, or makes it reject all requests. Meanwhile the condition
// Reachable of the Peer us-east has the reason, us-east keeps its region, and the loops serve the
// other peers. After the fault, us-east has the same Accounts, claims and namespaces as before.
func peerAway(t *testing.T, w *world, reason string, begin, end fault) {
	planetest.Apply(t, w.usEast, regionClaim("loodse", "kept"))
	w.awaitClaim(t, w.usEast, "kept", "Bound")
	w.of(w.central).await(t, "us-east lists its region", peers, "", "us-east", servesRegion("kept"))
	before := w.of(w.usEast).uids(t, accounts, regionClaims, namespaces)

	require.NoError(t, begin(t.Context()))
	endsIfFailed(t, end)
	away := w.of(w.central).await(t, "us-east is reported as unreachable", peers, "", "us-east",
		isObserved, has("NotReady", "phase"), hasCondition("Reachable", "False", reason))
	require.NoError(t, servesRegion("kept")(away), "an unreachable peer keeps its regions")
	w.of(w.central).await(t, "loodse is not known to be everywhere", accounts, "", "loodse",
		hasCondition("Ready", "Unknown", ""), has([]any{"us-east"}, "peers", "unknown"), has(nil, "peers", "missing"))

	// The other peers get free regions, but no region of us-east.
	for _, name := range []string{"kept", "other"} {
		planetest.Apply(t, w.euWest, regionClaim("loodse", name))
	}
	w.awaitClaim(t, w.euWest, "other", "Bound")
	w.awaitClaim(t, w.euWest, "kept", "Conflict")
	w.awaitPeers(t, "local", "eu-west", "ap-south")

	require.NoError(t, end(t.Context()))
	w.awaitPeers(t, "us-east")
	w.of(w.central).await(t, "loodse is everywhere", accounts, "", "loodse", isObserved, has("Ready", "phase"),
		hasCondition("PresentInAllPeers", "True", ""), has(nil, "peers", "unknown"))
	require.Equal(t, before, w.of(w.usEast).uids(t, accounts, regionClaims, namespaces), "something was deleted")
	w.awaitClaim(t, w.usEast, "kept", "Bound")
	w.awaitClaim(t, w.euWest, "kept", "Conflict")
	w.forget(t, "kept", "other")
}

// endsIfFailed ends a fault after a test that failed, since such a test may not have ended the
// fault itself. It does nothing after a test that passed: a second restart of the plane would be a
// fault in the next test.
func endsIfFailed(t *testing.T, end fault) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			_ = end(context.WithoutCancel(t.Context()))
		}
	})
}

// forget deletes these claims in all planes.
func (w *world) forget(t *testing.T, names ...string) {
	t.Helper()
	for _, p := range w.planes {
		for _, name := range names {
			w.of(p).remove(t, regionClaims, "loodse", name)
		}
	}
}

// servesRegion expects a Peer to list a region of loodse.
func servesRegion(name string) expectation {
	return func(obj *unstructured.Unstructured) error {
		regions, _, err := unstructured.NestedSlice(obj.Object, "status", "regions")
		for _, each := range regions {
			if r, _ := each.(map[string]any); r["name"] == name && r["provider"] == "loodse" {
				return nil
			}
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is not one of the regions: %v", name, regions)
	}
}

// centralAway makes the central plane unreachable. Bound claims stay Bound, new ones are decided
// once the plane is back, and no Account is lost.
func centralAway(t *testing.T, w *world, members *shard.Members, begin, end fault) {
	planetest.Apply(t, w.euWest, regionClaim("loodse", "kept"))
	w.awaitClaim(t, w.euWest, "kept", "Bound")
	before := map[*plane.Plane]map[string]string{}
	for _, p := range w.planes {
		before[p] = w.of(p).uids(t, accounts, peers, namespaces)
	}

	require.NoError(t, begin(t.Context()))
	endsIfFailed(t, end)
	for _, p := range []*plane.Plane{w.usEast, w.apSouth} {
		planetest.Apply(t, p, regionClaim("loodse", "kept"))
		planetest.Apply(t, p, regionClaim("loodse", "new"))
	}
	// Without the plane no replica knows its share of the work, so no replica works.
	planetest.Eventually(t, soon, "the program releases its work", func(context.Context) error {
		if live := members.Live(); len(live) > 0 {
			return fmt.Errorf("its live members are %v", live)
		}
		return nil
	})
	for _, p := range []*plane.Plane{w.usEast, w.apSouth} {
		for _, name := range []string{"kept", "new"} {
			require.Contains(t, []string{"", "Pending"}, phaseOf(w.of(p).get(t, regionClaims, "loodse", name)), "%s in %s", name, p.Name())
		}
	}
	w.awaitClaim(t, w.euWest, "kept", "Bound")

	require.NoError(t, end(t.Context()))
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.awaitAccount(t, "loodse")
	require.Contains(t, []string{"us-east", "ap-south"}, w.settled(t, "new", []*plane.Plane{w.usEast, w.apSouth}))
	require.Equal(t, "eu-west", w.settled(t, "kept", []*plane.Plane{w.euWest, w.usEast, w.apSouth}))
	for _, p := range w.planes {
		require.Equal(t, before[p], w.of(p).uids(t, accounts, peers, namespaces), "%s: something was deleted", p.Name())
	}
	w.forget(t, "kept", "new")
}

// badKubeconfig writes an unusable kubeconfig into the Secret of eu-west. The Peer's status has the
// reason, and the previous kubeconfig stays in use until a usable one replaces it.
func badKubeconfig(t *testing.T, w *world, bad []byte, reason string) {
	uid := w.of(w.central).get(t, peers, "", "eu-west").Object["status"].(map[string]any)["clusterUID"]
	w.store(t, "eu-west", bad)
	w.of(w.central).await(t, "the bad kubeconfig is reported", peers, "", "eu-west", isObserved,
		hasCondition("KubeconfigValid", "False", reason), hasCondition("Reachable", "True", ""), has(uid, "clusterUID"))
	planetest.Apply(t, w.euWest, regionClaim("loodse", "served"))
	w.awaitClaim(t, w.euWest, "served", "Bound")

	w.store(t, "eu-west", kubeconfig(t, w.euWest))
	w.of(w.central).await(t, "the good one is used", peers, "", "eu-west", isObserved, has("Ready", "phase"),
		hasCondition("KubeconfigValid", "True", "Accepted"), has(uid, "clusterUID"))
	w.forget(t, "served")
}

// becomesMaster makes ap-south a master for a while, with a program of its own that registers the
// central plane as a peer. Neither of the two masters serves the other.
func becomesMaster(t *testing.T, w *world) {
	other := &world{planes: w.planes, central: w.apSouth, clients: w.clients}
	planetest.Apply(t, w.apSouth, "{apiVersion: v1, kind: Namespace, metadata: {name: "+installation+"}}")
	grantCentral(t, w.apSouth)
	before := w.of(w.apSouth).uids(t, accounts)
	_, stop := other.start(t, "other", "other", nil)
	other.register(t, "central", w.central)
	planetest.Apply(t, w.apSouth, "{apiVersion: operator.kubecarrier.io/v1alpha1, kind: KubeCarrier, metadata: {name: kubecarrier}, spec: {master: true}}")
	refused := []expectation{isObserved, has("NotReady", "phase"), hasCondition("Ready", "False", "IsMaster"), hasRegions(nil)}
	w.of(w.central).await(t, "it is refused", peers, "", "ap-south", refused...)
	w.of(w.apSouth).await(t, "it refuses the other master", peers, "", "central", refused...)
	w.of(w.apSouth).await(t, "it has a local peer", peers, "", "local", isObserved, has("Ready", "phase"))
	w.awaitPeers(t, "local", "eu-west", "us-east")

	w.of(w.apSouth).remove(t, kubeCarriers, "", "kubecarrier")
	stop()
	w.awaitPeers(t, "ap-south")
	w.awaitAccount(t, "loodse")
	require.Equal(t, before, w.of(w.apSouth).uids(t, accounts), "an Account was deleted, or replaced")
}

// registeredTwice registers a cluster that is a peer already, and the central plane. Both are
// refused.
func registeredTwice(t *testing.T, w *world) {
	w.register(t, "twin", w.euWest)
	w.register(t, "self", w.central)
	w.of(w.central).await(t, "the twin is refused", peers, "", "twin", isObserved,
		has("NotReady", "phase"), hasCondition("Ready", "False", "SameCluster"), hasRegions(nil))
	w.of(w.central).await(t, "the master is refused", peers, "", "self", isObserved,
		has("NotReady", "phase"), hasCondition("Ready", "False", "IsMaster"), hasRegions(nil))
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.of(w.central).remove(t, peers, "", "twin")
	w.of(w.central).remove(t, peers, "", "self")
	w.awaitAccount(t, "loodse")
}
