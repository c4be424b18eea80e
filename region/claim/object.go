// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

var (
	claims   = v1alpha1.GroupVersion.WithResource("regionclaims")
	clusters = v1alpha1.GroupVersion.WithResource("serviceclusters")
)

// stageOf returns the stage of the fan-out protocol for an object; empty if the object was applied
// without it.
func stageOf(obj *unstructured.Unstructured) fanoutv1alpha1.Stage {
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	return fanoutv1alpha1.Stage(stage)
}

// inEffect reports whether an object counts: it was applied, or its operation is committed.
// Reservations and guards do not count.
func inEffect(obj *unstructured.Unstructured) bool {
	switch stageOf(obj) {
	case "", fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving:
		return true
	}
	return false
}

// leaving reports whether an object is being deleted, which cannot be undone.
func leaving(obj *unstructured.Unstructured) bool {
	return obj.GetDeletionTimestamp() != nil || stageOf(obj) == fanoutv1alpha1.StageRemoving
}

// statusIn returns the status that arbiters wrote to a RegionClaim. It is zero if another client
// wrote the phase or the holder.
func statusIn(obj *unstructured.Unstructured) v1alpha1.RegionClaimStatus {
	if isForeign(obj) {
		return v1alpha1.RegionClaimStatus{}
	}
	return writtenIn(obj)
}

// isForeign reports whether the phase or the holder of a RegionClaim was written by another client
// than an arbiter.
func isForeign(obj *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"phase"}, {"holder", "peer"}, {"holder", "since"}} {
		_, there, _ := unstructured.NestedFieldNoCopy(obj.Object, append([]string{"status"}, path...)...)
		if there && !slices.Contains(loop.StatusManagers(obj, path...), FieldManager) {
			return true
		}
	}
	return false
}

// isReplaced reports whether a RegionClaim no longer has the status of an arbiter: the status is
// foreign, or this arbiter has written mine and the phase is now empty.
func isReplaced(obj *unstructured.Unstructured, mine *report) bool {
	return isForeign(obj) || mine != nil && writtenIn(obj).Phase == ""
}

// writerOf returns another field manager of the phase of a RegionClaim, or else of the holder;
// empty if neither has one.
func writerOf(obj *unstructured.Unstructured) string {
	for _, path := range [][]string{{"phase"}, {"holder"}} {
		for _, m := range loop.StatusManagers(obj, path...) {
			if m != FieldManager {
				return m
			}
		}
	}
	return ""
}

// writtenIn returns a RegionClaim's status, by any writer.
func writtenIn(obj *unstructured.Unstructured) v1alpha1.RegionClaimStatus {
	var s v1alpha1.RegionClaimStatus
	if raw, ok := obj.Object["status"].(map[string]any); ok {
		// A status that does not convert was written by another client, and is replaced.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s)
	}
	return s
}

// boundSince returns since when the RegionClaim's status in this peer is Bound; zero if it is not.
func boundSince(obj *unstructured.Unstructured, peer region.PeerName) time.Time {
	s := statusIn(obj)
	if s.Phase != v1alpha1.RegionClaimBound || s.Holder.Peer != string(peer) {
		return time.Time{}
	}
	return s.Holder.Since.UTC()
}

// identified returns the object to apply: a status, with the identity and the resourceVersion of
// obj as it was read. The resourceVersion prevents a write to a changed object, or to another
// object of this name: API servers ignore the UID in writes of a custom resource's status.
func identified(obj *unstructured.Unstructured, status any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	apply.SetAPIVersion(obj.GetAPIVersion())
	apply.SetKind(obj.GetKind())
	apply.SetNamespace(obj.GetNamespace())
	apply.SetName(obj.GetName())
	apply.SetUID(obj.GetUID())
	apply.SetResourceVersion(obj.GetResourceVersion())
	return apply, nil
}

// ownerOf returns the ServiceCluster that a RegionClaim was created for.
func ownerOf(claim *unstructured.Unstructured) (metav1.OwnerReference, bool) {
	for _, ref := range claim.GetOwnerReferences() {
		if ref.Kind == "ServiceCluster" && ref.APIVersion == v1alpha1.GroupVersion.String() {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}

// claimFor returns a RegionClaim for a ServiceCluster without one. The claim is owned by the
// ServiceCluster.
func claimFor(cluster *unstructured.Unstructured) *unstructured.Unstructured {
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	claim.SetAPIVersion(v1alpha1.GroupVersion.String())
	claim.SetKind("RegionClaim")
	claim.SetNamespace(cluster.GetNamespace())
	claim.SetName(cluster.GetName())
	claim.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ServiceCluster", Name: cluster.GetName(), UID: cluster.GetUID(),
	}})
	return claim
}
