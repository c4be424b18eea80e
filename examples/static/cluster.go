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
		conn, err := s.loops.ring.Conn(name)
		if err != nil {
			return err
		}
		obj, err := conn.Dynamic().Resource(fanout.ServiceClusters().Resource).Namespace("loodse").Get(ctx, cluster, metav1.GetOptions{})
		if err != nil {
			return err
		}
		stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
		s.out.row(name, stage)
	}
	return nil
}

// refused asks for a name that another peer has.
func (s *story) refused(ctx context.Context, obj fanout.Object, target region.PeerName) error {
	_, err := s.loops.coordinator.Add(ctx, obj, fanout.AddOptions{Target: target})
	held, ok := errors.AsType[*fanout.HeldError](err)
	if !ok {
		return fmt.Errorf("%s was not refused as held: %w", target, err)
	}
	s.out.note("The same for %s: refused, peer %s has it.", target, held.Holder)
	return nil
}
