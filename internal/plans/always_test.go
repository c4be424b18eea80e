// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// judgment checks a condition that must hold after each write.
type judgment func(ctx context.Context, w perturb.Write, access perturb.Access) error

// enoughAvailable returns a judgment on each write by which a Splitter takes replicas from a shard
// of web. After the write, as many replicas must be available as the argument least demands. If
// fewer were available before the write, none of these may be lost. Shards in clusters without a
// SyncTarget may be deleted, also if a new SyncTarget has the same name. A shard that is being
// deleted does not count.
func enoughAvailable(least int64) judgment {
	return func(ctx context.Context, w perturb.Write, access perturb.Access) error {
		taken := availableIn(w.Before) - availableIn(w.After)
		if w.Loop != "splitter" || w.Resource != "deployments.apps" || taken <= 0 {
			return nil
		}
		parent, err := get(ctx, access, upstream, deployments, "web")
		if err != nil || parent == nil || parent.GetDeletionTimestamp() != nil || w.Before.GetLabels()[splitterv1alpha1.ParentLabel] != string(parent.GetUID()) {
			return err // the parent is deleted with all its shards
		}
		cluster, err := get(ctx, access, upstream, syncTargets, w.Before.GetAnnotations()[splitterv1alpha1.ClusterAnnotation])
		if err != nil || cluster == nil || !w.Before.GetCreationTimestamp().After(cluster.GetCreationTimestamp().Time) {
			return err
		}
		c, err := client(access, upstream, deployments)
		if err != nil {
			return err
		}
		shards, err := c.List(ctx, metav1.ListOptions{LabelSelector: splitterv1alpha1.ParentLabel + "=" + string(parent.GetUID())})
		if err != nil {
			return err
		}
		var left int64
		for i := range shards.Items {
			left += availableIn(&shards.Items[i])
		}
		if left < min(least, left+taken) {
			return fmt.Errorf("%d replicas were available, %d are, and %d must be", left+taken, left, least)
		}
		return nil
	}
}

// availableIn returns how many desired replicas of a shard are available; zero for nil or a deleted
// shard.
func availableIn(shard *unstructured.Unstructured) int64 {
	if shard == nil || shard.GetDeletionTimestamp() != nil {
		return 0
	}
	wanted, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas")
	available, _, _ := unstructured.NestedInt64(shard.Object, "status", "availableReplicas")
	return min(wanted, available)
}

// keepsCopies requires that a syncer deletes no downstream object while its origin exists and is
// for the cluster.
func keepsCopies(ctx context.Context, w perturb.Write, access perturb.Access) error {
	if w.Loop != "syncer of "+w.Server || w.Verb != "delete" || w.Before == nil || w.Before.GetDeletionTimestamp() != nil {
		return nil
	}
	origin, err := get(ctx, access, upstream, resourceOf[w.Before.GetKind()], w.Name)
	if err != nil || origin == nil || origin.GetDeletionTimestamp() != nil || w.Before.GetAnnotations()["syncer.atoll.dev/uid"] != string(origin.GetUID()) {
		return err
	}
	labels := origin.GetLabels()
	if labels[syncerv1alpha1.ClusterLabel] == w.Server || labels[syncerv1alpha1.StateLabelPrefix+w.Server] == syncerv1alpha1.StateSync {
		return fmt.Errorf("the copy of %s was deleted, which is for the cluster", w.Name)
	}
	return nil
}
