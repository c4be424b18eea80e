// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ambiguitytest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// operation is one request to a coordinator.
type operation struct {
	kind fanout.Kind
	// before runs first, through connections that bypass the boxes. It creates the object that the
	// operation updates or removes. before is nil if the operation needs no object.
	before func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error
	run    func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error
	// effect reports whether the operation is in effect. primary is the primary of the object, or
	// nil if it does not exist.
	effect func(primary *unstructured.Unstructured) bool
}

func (o operation) resource() schema.GroupVersionResource { return o.kind.Resource }

var (
	addServiceCluster    = operation{kind: fanout.ServiceClusters(), run: addCluster, effect: present}
	removeServiceCluster = operation{kind: fanout.ServiceClusters(), before: addCluster, run: remove(fanout.ServiceClusters()), effect: absent}
	addAccount           = operation{kind: account.Kind(), run: add("Tenant"), effect: present}
	updateAccount        = operation{kind: account.Kind(), before: add("Tenant"), run: update, effect: revised}
	removeAccount        = operation{kind: account.Kind(), before: add("Tenant"), run: remove(account.Kind()), effect: absent}
)

func addCluster(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
	_, err := c.Add(ctx, newServiceCluster(key.Namespace, key.Name), fanout.AddOptions{Target: Target, Durable: true})
	return err
}

func add(role string) func(context.Context, *fanout.Coordinator, types.NamespacedName) error {
	return func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
		_, err := c.Add(ctx, newAccount(key.Name, role), fanout.AddOptions{Target: Target})
		return err
	}
}

func update(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
	_, err := c.Update(ctx, newAccount(key.Name, "Provider"), fanout.AddOptions{})
	return err
}

func remove(kind fanout.Kind) func(context.Context, *fanout.Coordinator, types.NamespacedName) error {
	return func(ctx context.Context, c *fanout.Coordinator, key types.NamespacedName) error {
		_, err := c.Remove(ctx, kind.GroupKind(), key, fanout.RemoveOptions{})
		return err
	}
}

func present(primary *unstructured.Unstructured) bool { return primary != nil }
func absent(primary *unstructured.Unstructured) bool  { return primary == nil }
func revised(primary *unstructured.Unstructured) bool {
	if primary == nil {
		return false
	}
	roles, _, _ := unstructured.NestedStringSlice(primary.Object, "spec", "roles")
	return len(roles) == 1 && roles[0] == "Provider"
}

// primary returns the committed primary that is not being removed, or nil.
func (b *Bench) primary(t *testing.T, o operation, key types.NamespacedName) (found *unstructured.Unstructured) {
	t.Helper()
	for _, obj := range b.held(t, o, key) {
		stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
		role, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "claim", "role")
		if role == "Primary" && (stage == "Configured" || stage == "Active") {
			require.Nil(t, found, "%s has two owners", key)
			found = obj
		}
	}
	return found
}

// held returns the object that each peer holds under a name. The reads bypass the boxes.
func (b *Bench) held(t *testing.T, o operation, key types.NamespacedName) map[region.PeerName]*unstructured.Unstructured {
	t.Helper()
	all := map[region.PeerName]*unstructured.Unstructured{}
	for name := range b.boxes {
		conn, err := b.past.Conn(name)
		require.NoError(t, err)
		obj, err := conn.Dynamic().Resource(o.resource()).Namespace(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(t, err)
		all[name] = obj
	}
	return all
}
