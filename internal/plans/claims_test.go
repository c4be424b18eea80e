// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

var claimTypes = definitionsOf("regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io")

const (
	loodse      = "{apiVersion: v1, kind: Namespace, metadata: {name: loodse}}"
	kubecarrier = "{apiVersion: v1, kind: Namespace, metadata: {name: kubecarrier-system}}"
	claimOfA    = "{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {namespace: loodse, name: a}, spec: {}}"
	clusterA    = "{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: a}, spec: {}}"
	clusterB    = "{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: b}, spec: {}}"
)

// claims is a scenario in which providers claim the region a in two peers and give it up, and
// create a ServiceCluster b without a claim.
func claims() perturb.Scenario {
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"plane": nil, "eu": claimTypes, "us": claimTypes},
			map[string][]string{"plane": {kubecarrier}, "eu": {loodse}, "us": {loodse}}),
		Loops: []perturb.Loop{{Name: "arbiter", Run: arbiter("eu", "us")}},
		Script: []perturb.Step{
			put("eu claims a", "eu", claimOfA),
			put("us claims a", "us", claimOfA),
			put("us makes the cluster a", "us", clusterA),
			put("eu makes the cluster b", "eu", clusterB),
			deletes("eu gives a up", "eu", claimOfA),
			put("eu claims a again", "eu", claimOfA),
			deletes("eu deletes the cluster b", "eu", clusterB),
			deletes("eu gives a up again", "eu", claimOfA),
		},
		Differ: claimsDiffer,
		Holds:  oneHolder("eu", "us"),
	}
}

var claimsDiffer = []perturb.Field{
	// A claim that is deleted while its ServiceCluster exists is created again, with the cluster as
	// its owner.
	{Resource: "regionclaims.kubecarrier.io", Path: "metadata.ownerReferences"},
	// The number of times a region changed its holder depends on which claims or decisions were
	// deleted, and when.
	{Resource: "leases.coordination.k8s.io", Path: "spec.leaseTransitions"},
}

// arbiter returns a program with an Arbiter and a ring of its own.
func arbiter(peers ...region.PeerName) func(context.Context, perturb.Access) error {
	return func(ctx context.Context, access perturb.Access) error {
		plane, err := region.APIFor(access("plane"))
		if err != nil {
			return err
		}
		ring, err := ringOf(access, peers...)
		if err != nil {
			return err
		}
		a, err := claim.New(plane, ring, claim.Options{})
		if err != nil {
			return err
		}
		return startAll(ctx, ring.Start, a.Start)
	}
}

// oneHolder requires that one claim of each region is Bound, and that all other claims of the
// region are in Conflict with it. It also requires that the condition RegionBound of a
// ServiceCluster is True if its claim is Bound, and not True otherwise.
func oneHolder(peers ...string) func(context.Context, perturb.Access) error {
	return func(ctx context.Context, access perturb.Access) error {
		bound := map[string]string{}
		said := map[string][]string{}
		for _, peer := range peers {
			claims, err := listOf(ctx, access, peer, resourceOf["RegionClaim"])
			if err != nil {
				return err
			}
			for _, c := range claims {
				key := c.GetNamespace() + "/" + c.GetName()
				phase, _, _ := unstructured.NestedString(c.Object, "status", "phase")
				holder, _, _ := unstructured.NestedString(c.Object, "status", "holder", "peer")
				switch {
				case phase == "Bound" && bound[key] != "":
					return fmt.Errorf("%s is Bound in %s and in %s", key, bound[key], peer)
				case phase == "Bound":
					bound[key] = peer
				case phase != "Conflict":
					return fmt.Errorf("%s in %s is %q", key, peer, phase)
				}
				said[key] = append(said[key], holder)
			}
		}
		if err := gated(ctx, access, bound, peers); err != nil {
			return err
		}
		for key, holders := range said {
			if bound[key] == "" {
				return fmt.Errorf("%s is Bound in no peer", key)
			}
			for _, holder := range holders {
				if holder != bound[key] {
					return fmt.Errorf("%s is Bound in %q, and a claim names %q", key, bound[key], holder)
				}
			}
		}
		return nil
	}
}

// gated requires that each ServiceCluster is open (its condition RegionBound is True) in the peer
// where its region is Bound, and only there.
func gated(ctx context.Context, access perturb.Access, bound map[string]string, peers []string) error {
	for _, peer := range peers {
		clusters, err := listOf(ctx, access, peer, resourceOf["ServiceCluster"])
		if err != nil {
			return err
		}
		for i := range clusters {
			var cluster v1alpha1.ServiceCluster
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clusters[i].Object, &cluster); err != nil {
				return err
			}
			open := meta.IsStatusConditionTrue(cluster.Status.Conditions, string(v1alpha1.ServiceClusterConditionRegionBound))
			if open != (bound[cluster.Namespace+"/"+cluster.Name] == peer) {
				return fmt.Errorf("the ServiceCluster %s of %s has RegionBound %t, and %q holds the region", cluster.Name, peer, open, bound[cluster.Namespace+"/"+cluster.Name])
			}
		}
	}
	return nil
}

func listOf(ctx context.Context, access perturb.Access, server string, gvr schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	client, err := dynamic.NewForConfig(access(server))
	if err != nil {
		return nil, err
	}
	l, err := client.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// While a watch is late, after a connection that broke, the Arbiter repeats writes to a claim that is gone with backoff.
func TestALateWatchCausesFewWritesToClaims(t *testing.T) {
	at := func(n int) perturb.Point {
		return perturb.Point{Loop: "arbiter", Server: "eu", Verb: "watch", Resource: "regionclaims.kubecarrier.io", N: n}
	}
	both := func(p perturb.Plan) bool {
		return p[0].Kind == perturb.WatchLate && p[0].At == at(5) || p[0].Kind == perturb.WatchGap && p[0].At == at(4)
	}
	single := perturb.Find(t, claims(), perturb.Options{Only: both})
	require.Equal(t, 2, single.Runs)
	require.Zero(t, single.Missed)
	require.Empty(t, single.Failures)
	const pairs = 6
	report := perturb.Find(t, claims(), perturb.Options{Only: both, Pairs: pairs})
	require.Equal(t, single.Runs+pairs, report.Runs)
	require.Less(t, report.Missed, pairs, "event 5 may come in the gap, so that the loop never observes it")
	require.Empty(t, report.Failures)
	require.Less(t, report.MostWrites, 3*report.Writes)
}
