// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// TestFaults injects one fault after the other. Each subtest ends its fault, and waits until the
// loops have recovered.
//
// Meanwhile no region is ever Bound in two planes at once. The objects that no subtest touches keep
// their UIDs: a region in eu-west, and the Account of the provider in all planes.
func TestFaults(t *testing.T) {
	w := newWorld(t)
	rotated := newRotations("eu-west", "us-east")
	p, stop := w.start(t, "faults", "a", &region.Observer{Rotated: rotated.note})
	w.populate(t, p)
	planetest.Apply(t, w.euWest, regionClaim("loodse", "steady"))
	w.awaitClaim(t, w.euWest, "steady", "Bound")
	before := w.steady(t)
	w.watched(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"claims race from all planes", claimsRace},
		{"peer paused", func(t *testing.T, w *world) { peerAway(t, w, "Unreachable", w.usEast.Pause, w.usEast.Resume) }},
		{"kubeconfigs change under load", func(t *testing.T, w *world) { rotate(t, w, p, rotated) }},
		{"kubeconfig of another cluster", func(t *testing.T, w *world) {
			badKubeconfig(t, w, kubeconfig(t, w.apSouth), "OtherCluster")
		}},
		{"kubeconfig is garbage", func(t *testing.T, w *world) { badKubeconfig(t, w, []byte("garbage: ["), "KubeconfigInvalid") }},
		{"central plane paused", func(t *testing.T, w *world) { centralAway(t, w, p.members, w.central.Pause, w.central.Resume) }},
		{"central plane killed", func(t *testing.T, w *world) { centralAway(t, w, p.members, w.central.Kill, w.central.Restart) }},
		{"peer killed", func(t *testing.T, w *world) { peerAway(t, w, "Unreachable", w.usEast.Kill, w.usEast.Restart) }},
		{"credentials revoked", func(t *testing.T, w *world) {
			good := secret("us-east", kubeconfig(t, w.usEast))
			peerAway(t, w, "CredentialsRejected",
				func(context.Context) error { revoke(t, w, rotated); return nil },
				func(ctx context.Context) error { return w.central.Apply(ctx, []byte(good)) })
		}},
		{"two masters", becomesMaster},
		{"a cluster is registered twice", registeredTwice},
		{"two programs at once", twoPrograms},
		{"a replica is killed", func(t *testing.T, w *world) {
			stop() // otherwise this program would do all the work
			replicaKilled(t, w)
		}},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			test.run(t, w)
			w.awaitClaim(t, w.euWest, "steady", "Bound")
			require.Equal(t, before, w.steady(t), "something was deleted, or replaced")
		}) {
			break // the later tests would fail for the same reason
		}
	}
}

// steady returns the UIDs of objects that no test touches.
func (w *world) steady(t *testing.T) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{"claim": w.of(w.euWest).get(t, regionClaims, "loodse", "steady").GetUID()}
	for _, p := range w.planes {
		uids["Account in "+p.Name()] = w.of(p).get(t, accounts, "", "loodse").GetUID()
		uids["namespace in "+p.Name()] = w.of(p).get(t, namespaces, "", "loodse").GetUID()
	}
	return uids
}

// claimsRace claims the same regions in all planes at once. Each region is given to one plane, and
// all planes agree on that plane. When that plane deletes its claim, another plane gets the region,
// until no plane claims it.
func claimsRace(t *testing.T, w *world) { w.race(t, "race", 6) }

// race claims each of n regions in all planes at once, and requires that each is Bound in one plane
// after the other.
func (w *world) race(t *testing.T, prefix string, n int) {
	t.Helper()
	var claiming sync.WaitGroup
	errs := make([]error, len(w.planes))
	for i, p := range w.planes {
		claiming.Go(func() {
			for region := range n {
				// Each plane starts with another region, so that each plane claims some region
				// first.
				name := fmt.Sprintf("%s-%d", prefix, (region+i)%n)
				if err := p.Apply(t.Context(), []byte(regionClaim("loodse", name))); err != nil {
					errs[i] = err
				}
			}
		})
	}
	claiming.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	claimants := w.planes
	for len(claimants) > 0 {
		held := map[string][]int{} // by plane
		for region := range n {
			holder := w.settled(t, fmt.Sprintf("%s-%d", prefix, region), claimants)
			held[holder] = append(held[holder], region)
		}
		t.Logf("of %d planes: %v", len(claimants), held)
		// The plane with the most regions deletes all its claims, whether Bound or in Conflict.
		most := slices.MaxFunc(slices.Collect(maps.Keys(held)), func(a, b string) int { return len(held[a]) - len(held[b]) })
		for region := range n {
			require.NoError(t, w.clients[most].Resource(regionClaims).Namespace("loodse").Delete(t.Context(), fmt.Sprintf("%s-%d", prefix, region), metav1.DeleteOptions{}))
		}
		claimants = slices.DeleteFunc(slices.Clone(claimants), func(p *plane.Plane) bool { return p.Name() == most })
	}
}

// settled waits until the claims of a region in these planes are Bound in one plane and in Conflict
// in all others, and all name the holder. It returns the holding plane.
func (w *world) settled(t *testing.T, name string, claimants []*plane.Plane) string {
	t.Helper()
	var holders []string
	var bound string
	for _, p := range claimants {
		obj := w.of(p).await(t, name+" is decided in "+p.Name(), regionClaims, "loodse", name, isObserved, func(obj *unstructured.Unstructured) error {
			holder, _, _ := unstructured.NestedString(obj.Object, "status", "holder", "peer")
			phase := phaseOf(obj)
			if phase != "Bound" && phase != "Conflict" || (phase == "Bound") != (holder == peerOf(p)) {
				return fmt.Errorf("it is %q, held by %q", phase, holder)
			}
			if !slices.ContainsFunc(claimants, func(p *plane.Plane) bool { return peerOf(p) == holder }) {
				return fmt.Errorf("it is held by %q, which gave it up", holder)
			}
			return nil
		})
		holder, _, _ := unstructured.NestedString(obj.Object, "status", "holder", "peer")
		holders = append(holders, holder)
		if phaseOf(obj) == "Bound" {
			bound = p.Name()
		}
	}
	require.Len(t, slices.Compact(holders), 1, "%s has several holders", name)
	require.NotEmpty(t, bound, "%s is Bound nowhere", name)
	return bound
}

// peerOf returns the name of the Peer object of a plane.
func peerOf(p *plane.Plane) string {
	if p.Name() == "central" {
		return "local"
	}
	return p.Name()
}

// twoPrograms runs a second program, which does not share work with the first.
func twoPrograms(t *testing.T, w *world) {
	_, stop := w.start(t, "another", "another", nil)
	w.race(t, "two", 4)
	planetest.Apply(t, w.central, provider("two"))
	w.awaitAccount(t, "two")
	w.awaitPeers(t, "local", "eu-west", "us-east", "ap-south")
	w.of(w.central).remove(t, accounts, "", "two")
	stop()
}
