// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// finalized says whether a parent has our finalizer.
func finalized(obj *unstructured.Unstructured) bool {
	return slices.Contains(obj.GetFinalizers(), v1alpha1.ShardsFinalizer)
}

// syncersFinalizer is the finalizer of a cluster's syncer.
func syncersFinalizer(cluster string) string { return syncerv1alpha1.FinalizerPrefix + cluster }

// bornWith says whether a shard was made with the finalizer of its cluster's syncer and still has it.
func bornWith(shard *unstructured.Unstructured, cluster string) bool {
	return slices.Contains(shard.GetFinalizers(), syncersFinalizer(cluster)) && loop.OwnsPath(shard, Manager, "metadata", "finalizers")
}

// keepFinalizer leaves current the finalizer that it was made with, which an apply without it would take away. What the syncer
// has taken away does not come back by that: desired is for current as it was read.
func keepFinalizer(current, desired *unstructured.Unstructured) {
	if cluster := clusterOf(desired); bornWith(current, cluster) {
		desired.SetFinalizers([]string{syncersFinalizer(cluster)})
	}
}

// letGo lets a shard go that is being deleted, if it was made with the finalizer of a syncer that nobody runs any more.
func (s *Splitter) letGo(ctx context.Context, k *sort, shard *unstructured.Unstructured) error {
	cluster := clusterOf(shard)
	if !bornWith(shard, cluster) || !s.readiness.gone(cluster) {
		return nil
	}
	return without(ctx, k, shard, syncersFinalizer(cluster))
}

// without takes a finalizer off an object, if that is as it was read; if it is not, that is a Conflict.
func without(ctx context.Context, k *sort, obj *unstructured.Unstructured, finalizer string) error {
	finalizers := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return err
	}
	_, err = k.meta(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("let go of %s: %w", loop.KeyOf(obj), err)
	}
	return nil
}
