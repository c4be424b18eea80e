// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// route finds the peer of a region, and sends it requests as the program itself and as alice. It
// also looks up a region that does not exist.
func (s *story) route(ctx context.Context) error {
	routes, err := router.New(s.ring, router.Options{})
	if err != nil {
		return err
	}
	key := regionOf(s.ring.peer(1))
	route, err := routes.Lookup(ctx, key)
	if err != nil {
		return err
	}
	s.out.row(key, "is served by", route.Peer)

	o := s.serviceCluster("db-1")
	self, err := routes.Client(key, router.Self())
	if err != nil {
		return err
	}
	obj, err := o.in(self).Get(ctx, o.key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	s.out.row("as itself", "reads "+o.String(), "resource version "+obj.GetResourceVersion())
	if err := s.writeConfigMap(ctx, self); err != nil {
		return err
	}
	s.out.row("as itself", "creates and deletes a ConfigMap", "in namespace "+s.account)

	alice, err := routes.Client(key, router.Impersonate(router.User{Name: "alice"}))
	if err != nil {
		return err
	}
	switch _, err := o.in(alice).Get(ctx, o.key.Name, metav1.GetOptions{}); {
	case err == nil:
		s.out.row("as alice", "reads "+o.String(), "the peer allows it")
	case apierrors.IsForbidden(err):
		s.out.row("as alice", "reads "+o.String(), "forbidden by the peer: alice was granted nothing")
	default:
		return err
	}

	_, err = routes.Lookup(ctx, region.Key{Provider: "loodse", Name: "mars-1"})
	if !errors.Is(err, region.ErrUnknownRegion) {
		return fmt.Errorf("look-up of a region without a peer: %w", err)
	}
	s.out.note("%v", err)
	return nil
}

// writeConfigMap creates a ConfigMap in the account's namespace and deletes it.
func (s *story) writeConfigMap(ctx context.Context, api region.API) error {
	configMaps := api.Dynamic().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(s.account)
	_, err := configMaps.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "greeting"},
		"data":       map[string]any{"text": "hello"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return configMaps.Delete(ctx, "greeting", metav1.DeleteOptions{})
}
