// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
)

var (
	anyUID    = rapid.SampledFrom([]types.UID{"", "plane", "one", "two"})
	anyStatus = rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"})
	anyReason = rapid.SampledFrom([]masterv1alpha1.PeerConditionReason{
		masterv1alpha1.PeerReasonPending, masterv1alpha1.PeerReasonReachable, masterv1alpha1.PeerReasonSameCluster,
		masterv1alpha1.PeerReasonIsMaster, masterv1alpha1.PeerReasonCRDsMissing, "SomebodyElses",
	})
	anyConditions = []masterv1alpha1.PeerConditionType{
		masterv1alpha1.PeerConditionReady, masterv1alpha1.PeerConditionKubeconfigValid, masterv1alpha1.PeerConditionReachable,
		masterv1alpha1.PeerConditionRegionsUnique, "Odd",
	}
	anyKeys = rapid.SliceOfNDistinct(rapid.SampledFrom([]region.Key{{Provider: "loodse", Name: "a"}, {Provider: "loodse", Name: "b"}, {Provider: "acme", Name: "a"}}), 0, 3, rapid.ID[region.Key])
)

// drawPeer returns a Peer with an arbitrary status.
func drawPeer(t *rapid.T, name string) *masterv1alpha1.Peer {
	p := peerOf(name, rapid.IntRange(0, 2).Draw(t, "age of "+name), anyUID.Draw(t, "cluster of "+name))
	p.Generation = rapid.Int64Range(1, 2).Draw(t, "generation")
	p.Status.ObservedGeneration = rapid.Int64Range(0, 3).Draw(t, "observed")
	p.Status.Phase = rapid.SampledFrom([]masterv1alpha1.PeerPhase{"", masterv1alpha1.PeerReady, masterv1alpha1.PeerTerminating}).Draw(t, "phase")
	p.Status.Regions = nil
	for _, key := range anyKeys.Draw(t, "regions of "+name) {
		p.Status.Regions = append(p.Status.Regions, masterv1alpha1.RegionReference{Name: key.Name, Provider: key.Provider})
	}
	for _, kind := range anyConditions {
		if rapid.Bool().Draw(t, "has "+string(kind)) {
			c := condition(kind, anyStatus.Draw(t, "status"), anyReason.Draw(t, "reason"), "said before")
			c.ObservedGeneration = rapid.Int64Range(0, 2).Draw(t, "generation of "+string(kind))
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
	}
	return p
}

// drawFindings returns arbitrary findings; complete ones if full.
func drawFindings(t *rapid.T, full bool) findings {
	known := func(what string) bool { return full || rapid.Bool().Draw(t, what) }
	f := findings{
		kubeconfig: kubeconfig{done: known("done"), usable: rapid.Bool().Draw(t, "usable"), reason: masterv1alpha1.PeerReasonAccepted},
		uid:        anyUID.Draw(t, "reached"), plane: "plane", looked: known("looked"), master: rapid.IntRange(0, 4).Draw(t, "master") == 0,
		known: known("known"), bound: anyKeys.Draw(t, "bound"), healthKnown: rapid.Bool().Draw(t, "watched"),
	}
	states := []region.Health{{State: region.Healthy}, {State: region.Unhealthy, Err: errors.New("refused")}}
	if !full {
		states = append(states, region.Health{})
		// No claim is both Bound and unsure.
		f.unsure = slices.DeleteFunc(anyKeys.Draw(t, "unsure"), func(k region.Key) bool { return slices.Contains(f.bound, k) })
		f.missing = rapid.SampledFrom([]error{nil, nil, apierrors.NewForbidden(peerResource.GroupResource(), "", nil)}).Draw(t, "missing")
	}
	f.health = rapid.SampledFrom(states).Draw(t, "health")
	for _, name := range []string{"x", "y"} {
		if rapid.Bool().Draw(t, "there is "+name) {
			f.others = append(f.others, drawPeer(t, name))
		}
	}
	return f
}

// The test draws a Peer with an arbitrary status, and findings. It repeatedly stores the status that statusOf returns.
// At most two of these statuses differ from the one before.
func TestStatesOfPeers(t *testing.T) {
	states, most := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		p, f := drawPeer(t, "p"), drawFindings(t, false)
		for step := 0; ; step++ {
			require.Less(t, step, 3, "no rest")
			next := statusOf(p, f, time.Unix(2_000_000, 0))
			if fmt.Sprint(next) == fmt.Sprint(p.Status) {
				most = max(most, step)
				return
			}
			p = p.DeepCopy()
			p.Status = next
		}
	})
	if !t.Failed() {
		docpage.Section(t, "states.md", "central", fmt.Sprintf("- central plane: %d states of a Peer, of other Peers and of its findings; at most %d statuses until one changes nothing\n", states, most))
	}
}

// With complete findings, only two parts of the previous status influence the next one: the accepted cluster and the
// served regions, which decide between two Peers of different age.
func TestStatusDependsOnNoHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, f := drawPeer(t, "p"), drawPeer(t, "p"), drawFindings(t, true)
		q.ObjectMeta, q.Status.ClusterUID, q.Status.Regions = p.ObjectMeta, p.Status.ClusterUID, p.Status.Regions
		said := func(p *masterv1alpha1.Peer) map[string]any {
			next := statusOf(p, f, time.Unix(2_000_000, 0))
			all := map[string]any{"cluster": next.ClusterUID, "phase": next.Phase, "regions": fmt.Sprint(next.Regions), "generation": next.ObservedGeneration}
			for _, c := range next.Conditions {
				if c.Type != "Odd" {
					all[c.Type] = fmt.Sprint(c.Status, c.Reason)
				}
			}
			return all
		}
		require.Equal(t, said(p), said(q))
	})
}
