// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

const cluster = "us-east-1"

func newServiceCluster(name string) *regionv1alpha1.ServiceCluster {
	return &regionv1alpha1.ServiceCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: regionv1alpha1.GroupVersion.String(), Kind: "ServiceCluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "loodse", Name: name},
		Spec:       regionv1alpha1.ServiceClusterSpec{KubeconfigSecret: regionv1alpha1.ObjectReference{Name: name}},
	}
}

func newClaim(name string) *regionv1alpha1.RegionClaim {
	return &regionv1alpha1.RegionClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: regionv1alpha1.GroupVersion.String(), Kind: "RegionClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "loodse", Name: name},
	}
}

// claim claims the region for us-east.
func (s *story) claim(ctx context.Context) error {
	op, err := s.loops.coordinator.Add(ctx, newClaim(cluster), fanout.AddOptions{Target: "us-east"})
	if err != nil {
		return err
	}
	s.out.note("RegionClaim loodse/%s for us-east: %s", cluster, op.State)
	if err := s.refused(ctx, newClaim(cluster), "ap-south"); err != nil {
		return err
	}
	obj, err := s.await(ctx, claim.Kind(), "us-east", func(obj *unstructured.Unstructured) bool {
		return phaseOf(obj) == string(regionv1alpha1.RegionClaimBound)
	})
	if err != nil {
		return err
	}
	s.out.row("us-east", phaseOf(obj))
	return nil
}

func (s *story) addServiceCluster(ctx context.Context) error {
	op, err := s.loops.coordinator.Add(ctx, newServiceCluster(cluster), fanout.AddOptions{Target: "us-east"})
	if err != nil {
		return err
	}
	s.out.note("ServiceCluster loodse/%s for us-east: %s", cluster, op.State)
	if err := s.refused(ctx, newServiceCluster(cluster), "ap-south"); err != nil {
		return err
	}
	for _, name := range s.plant.names {
		text := "keeps the name"
		obj, err := s.await(ctx, fanout.ServiceClusters(), name, func(obj *unstructured.Unstructured) bool {
			return name != "us-east" || regionBound(obj) == "True"
		})
		if err != nil {
			return err
		}
		if name == "us-east" {
			text = "RegionBound: " + regionBound(obj)
		}
		stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
		s.out.row(name, fmt.Sprintf("%-10s", stage), text)
	}
	return nil
}

// await waits until done accepts the region's object in a peer.
func (s *story) await(ctx context.Context, kind fanout.Kind, name region.PeerName, done func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	conn, err := s.loops.ring.Conn(name)
	if err != nil {
		return nil, err
	}
	var obj *unstructured.Unstructured
	err = until(ctx, func() (bool, error) {
		obj, err = conn.Dynamic().Resource(kind.Resource).Namespace("loodse").Get(ctx, cluster, metav1.GetOptions{})
		return err == nil && done(obj), err
	})
	return obj, err
}

// regionBound returns the status of the condition RegionBound of a ServiceCluster.
func regionBound(obj *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(regionv1alpha1.ServiceClusterConditionRegionBound) {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

// refused requests a name that another peer has, and requires a refusal.
func (s *story) refused(ctx context.Context, obj fanout.Object, target region.PeerName) error {
	_, err := s.loops.coordinator.Add(ctx, obj, fanout.AddOptions{Target: target})
	held, ok := errors.AsType[*fanout.HeldError](err)
	if !ok {
		return fmt.Errorf("%s was not refused as held: %w", target, err)
	}
	s.out.note("The same for %s: refused, peer %s has it.", target, held.Holder)
	return nil
}
