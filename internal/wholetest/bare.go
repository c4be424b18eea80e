// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wholetest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Bare writes the same objects as Divided with the fewest requests: it creates each parent, its two
// shards upstream and their two downstream objects in their final form, five requests per parent.
func (s Servers) Bare(tb testing.TB, namespace string, n int) Cost {
	tb.Helper()
	return measure(tb, func() {
		each(tb, n, func(i int) error {
			obj := elsewhere(parent(namespace, i))
			obj.SetFinalizers([]string{"example.org/bare"})
			if err := create(tb.Context(), s.Up, obj); err != nil {
				return err
			}
			for c, cluster := range clusters {
				if err := create(tb.Context(), s.Up, shard(obj, cluster, c, true)); err != nil {
					return err
				}
				if err := create(tb.Context(), s.Clusters[c], shard(obj, cluster, c, false)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Requests makes the same requests as splitter and syncers, but without having to determine them:
// seven per parent. It writes the parent's finalizer before the shards, applies shards with
// finalizers, applies the downstream objects, and writes the parent's first status.
func (s Servers) Requests(tb testing.TB, namespace string, n int) Cost {
	tb.Helper()
	return measure(tb, func() {
		each(tb, n, func(i int) error {
			obj := elsewhere(parent(namespace, i))
			if err := create(tb.Context(), s.Up, obj); err != nil {
				return err
			}
			if err := apply(tb.Context(), s.Up, "bare-splitter", finalizer(obj)); err != nil {
				return err
			}
			for c, cluster := range clusters {
				if err := apply(tb.Context(), s.Up, "bare-splitter", shard(obj, cluster, c, true)); err != nil {
					return err
				}
				if err := apply(tb.Context(), s.Clusters[c], "bare-syncer", shard(obj, cluster, c, false)); err != nil {
					return err
				}
			}
			status := bare(obj)
			status.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": splitter.ConditionPlaced, "status": "True", "reason": "Placed", "message": "all replicas have a place"}}}
			return apply(tb.Context(), s.Up, "bare-splitter", status, "status")
		})
	})
}

// elsewhere labels an object so that neither the splitter nor a syncer selects it.
func elsewhere(obj *unstructured.Unstructured) *unstructured.Unstructured {
	labels := obj.GetLabels()
	labels[v1alpha1.ClusterLabel] = "elsewhere"
	obj.SetLabels(labels)
	return obj
}

// shard returns the i-th shard of a parent, with a finalizer or without.
func shard(of *unstructured.Unstructured, cluster string, i int, guarded bool) *unstructured.Unstructured {
	obj := of.DeepCopy()
	obj.SetName(splitter.ShardName(of.GetName(), cluster))
	obj.SetFinalizers(nil)
	if guarded {
		obj.SetFinalizers([]string{"example.org/bare"})
	}
	// Two clusters divide fifteen replicas into eight and seven.
	_ = unstructured.SetNestedField(obj.Object, int64(8-i), "spec", "replicas")
	return obj
}

// bare returns an object with the name and type of the given object, and no other fields.
func bare(of *unstructured.Unstructured) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind()}}
	obj.SetNamespace(of.GetNamespace())
	obj.SetName(of.GetName())
	return obj
}

func finalizer(of *unstructured.Unstructured) *unstructured.Unstructured {
	obj := bare(of)
	obj.SetFinalizers([]string{"example.org/bare"})
	return obj
}
