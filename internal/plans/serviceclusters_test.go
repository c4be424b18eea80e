// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const (
	clusterC  = "{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: c}, spec: {kubeconfigSecret: {name: c}}}"
	clusterC2 = "{apiVersion: kubecarrier.io/v1alpha1, kind: ServiceCluster, metadata: {namespace: loodse, name: c}, spec: {kubeconfigSecret: {name: c2}}}"
	claimOfC  = "{apiVersion: kubecarrier.io/v1alpha1, kind: RegionClaim, metadata: {namespace: loodse, name: c}, spec: {}}"
)

func secretOf(name, kubeconfig string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {namespace: loodse, name: %s}, stringData: {kubeconfig: %s}}", name, kubeconfig)
}

// serviceClusters is a scenario in which a ServiceCluster becomes Ready, loses its region and its
// cluster, and becomes Ready again with another kubeconfig.
func serviceClusters() perturb.Scenario {
	return perturb.Scenario{
		Servers: serve(map[string]func() (*regiontest.Definitions, error){"plane": nil, "eu": claimTypes, "us": claimTypes},
			map[string][]string{"plane": {kubecarrier}, "eu": {loodse}, "us": {loodse}}),
		Loops: []perturb.Loop{{Name: "arbiter", Run: arbiter("eu", "us")}, {Name: "clusters", Run: probing("eu", "us")}, adopter("us")},
		Script: []perturb.Step{
			put("us gets a kubeconfig", "us", secretOf("c", "dead")),
			put("us makes the cluster c", "us", clusterC),
			put("eu claims c too", "eu", claimOfC),
			put("the cluster is repaired", "us", secretOf("c", "good")),
			deletes("us gives c up", "us", claimOfC),
			put("us gets another kubeconfig", "us", secretOf("c2", "good")),
			deletes("eu gives c up", "eu", claimOfC),
			put("the cluster gets another kubeconfig", "us", clusterC2),
		},
		Differ: claimsDiffer,
		Always: readyOnlyIfBound,
		Holds:  clusterIsReady,
	}
}

// probing returns a program with a Controller and a ring of its own. A cluster answers if its
// kubeconfig is "good".
func probing(peers ...region.PeerName) func(context.Context, perturb.Access) error {
	return func(ctx context.Context, access perturb.Access) error {
		ring, err := ringOf(access, peers...)
		if err != nil {
			return err
		}
		c, err := servicecluster.New(ring, servicecluster.Options{Probe: func(_ context.Context, kubeconfig []byte) (v1alpha1.KubernetesVersion, error) {
			if string(kubeconfig) != "good" {
				return v1alpha1.KubernetesVersion{}, errors.New("connection refused")
			}
			return v1alpha1.KubernetesVersion{GitVersion: "v1.36.0"}, nil
		}})
		if err != nil {
			return err
		}
		return startAll(ctx, ring.Start, c.Start)
	}
}

// adopter plays a coordinator that adopts ServiceClusters.
func adopter(peer string) perturb.Loop {
	return perturb.Loop{Name: clusterOf + "adopter", Single: true, Run: func(ctx context.Context, access perturb.Access) error {
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			if err := adopt(ctx, access, peer); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}}
}

func adopt(ctx context.Context, access perturb.Access, peer string) error {
	applied, err := listOf(ctx, access, peer, resourceOf["ServiceCluster"])
	if err != nil {
		return err
	}
	for _, obj := range applied {
		if _, claimed := obj.Object["spec"].(map[string]any)["fanout"]; claimed || obj.GetDeletionTimestamp() != nil {
			continue
		}
		if err := unstructured.SetNestedMap(obj.Object, map[string]any{"stage": "Configured", "claim": map[string]any{
			"operation": "op-1", "digest": "d", "start": "2026-03-01T12:00:00.000000Z", "role": "Primary", "peer": peer, "target": peer,
		}}, "spec", "fanout"); err != nil {
			return err
		}
		api, err := api(access, peer)
		if err != nil {
			return err
		}
		_, err = api.Dynamic().Resource(resourceOf["ServiceCluster"]).Namespace(obj.GetNamespace()).
			Update(ctx, &obj, metav1.UpdateOptions{FieldManager: "atoll-fanout"})
		if err != nil {
			return err
		}
	}
	return nil
}

// readyOnlyIfBound requires of each status that a Controller writes: if Ready is True, then the region is bound and the
// cluster is reachable.
func readyOnlyIfBound(_ context.Context, w perturb.Write, _ perturb.Access) error {
	if w.FieldManager != servicecluster.FieldManager || w.After == nil {
		return nil
	}
	var c v1alpha1.ServiceCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.After.Object, &c); err != nil {
		return err
	}
	is := func(t v1alpha1.ServiceClusterConditionType) bool {
		return meta.IsStatusConditionTrue(c.Status.Conditions, string(t))
	}
	if is(v1alpha1.ServiceClusterConditionReady) && !(is(v1alpha1.ServiceClusterConditionRegionBound) && is(v1alpha1.ServiceClusterConditionReachable)) {
		return fmt.Errorf("the ServiceCluster %s is Ready with the conditions %+v", c.Name, c.Status.Conditions)
	}
	return nil
}

// clusterIsReady requires that the ServiceCluster c is Ready in us, with the version of its cluster.
func clusterIsReady(ctx context.Context, access perturb.Access) error {
	clusters, err := listOf(ctx, access, "us", resourceOf["ServiceCluster"])
	if err != nil {
		return err
	}
	if len(clusters) != 1 {
		return fmt.Errorf("us has %d ServiceClusters", len(clusters))
	}
	var c v1alpha1.ServiceCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(clusters[0].Object, &c); err != nil {
		return err
	}
	if c.Status.Phase != v1alpha1.ServiceClusterReady || c.Status.KubernetesVersion.GitVersion != "v1.36.0" || c.Status.ObservedGeneration != c.Generation {
		return fmt.Errorf("c is %s with version %q, observed %d of %d: %+v",
			c.Status.Phase, c.Status.KubernetesVersion.GitVersion, c.Status.ObservedGeneration, c.Generation, c.Status.Conditions)
	}
	return nil
}
