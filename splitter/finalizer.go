// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// finalized reports whether a parent has the Splitter's finalizer.
func finalized(obj *unstructured.Unstructured) bool {
	return slices.Contains(obj.GetFinalizers(), v1alpha1.ShardsFinalizer)
}

// recording is a Kind that stores facts about shards in an annotation of their parent, so that they outlive the shards.
type recording interface {
	// record returns the annotation of the parent, nil if there are no such facts.
	record(parent *unstructured.Unstructured, shards []Shard) map[string]string
}

// records reports whether the Kind stores facts about shards in their parent.
func (k *kindState) records() bool {
	_, ok := k.kind.(recording)
	return ok
}

// marked returns the metadata that the Splitter writes to a parent with the given shards: the finalizer, and the
// annotation that record returns.
func (k *kindState) marked(parent *unstructured.Unstructured, shards []Shard) *unstructured.Unstructured {
	mark := loop.Identity(parent)
	mark.SetFinalizers([]string{v1alpha1.ShardsFinalizer})
	if kind, ok := k.kind.(recording); ok {
		if annotations := kind.record(parent, shards); annotations != nil {
			mark.SetAnnotations(annotations)
		}
	}
	return mark
}

// syncersFinalizer returns the finalizer of a cluster's syncer.
func syncersFinalizer(cluster string) string { return syncerv1alpha1.FinalizerPrefix + cluster }

// bornWith reports whether the Splitter created a shard with the finalizer of its cluster's
// syncer and the shard still has it.
func bornWith(shard *unstructured.Unstructured, cluster string) bool {
	return slices.Contains(shard.GetFinalizers(), syncersFinalizer(cluster)) && loop.OwnsPath(shard, Manager, "metadata", "finalizers")
}

// keepFinalizer adds the finalizer of the cluster's syncer to desired if the Splitter created current
// with this finalizer: an apply without the finalizer would remove it. A finalizer that the syncer has
// removed does not come back, because the write of desired fails if current is stale.
func keepFinalizer(current, desired *unstructured.Unstructured) {
	if cluster := clusterOf(desired); bornWith(current, cluster) {
		desired.SetFinalizers([]string{syncersFinalizer(cluster)})
	}
}

// letGo removes the syncer's finalizer from a shard under deletion, if the Splitter created the
// shard with it and the cluster is gone: no syncer is left to remove it.
func (s *Splitter) letGo(ctx context.Context, k *kindState, shard *unstructured.Unstructured) error {
	cluster := clusterOf(shard)
	if !bornWith(shard, cluster) || !s.readiness.gone(cluster) {
		return nil
	}
	return loop.RemoveFinalizer(ctx, k.meta(shard.GetNamespace()), shard, syncersFinalizer(cluster), Manager)
}
