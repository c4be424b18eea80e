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

// stageOf is how far the fan-out protocol is with an object; empty if it was
// applied without it.
func stageOf(obj *unstructured.Unstructured) fanoutv1alpha1.Stage {
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	return fanoutv1alpha1.Stage(stage)
}

// inForce says whether an object stands for itself: it was applied, or its
// operation is committed. Reservations and guards do not.
func inForce(obj *unstructured.Unstructured) bool {
	switch stageOf(obj) {
	case "", fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving:
		return true
	}
	return false
}

// leaving says whether an object is on its way out, which cannot be undone.
func leaving(obj *unstructured.Unstructured) bool {
	return obj.GetDeletionTimestamp() != nil || stageOf(obj) == fanoutv1alpha1.StageRemoving
}

// statusIn reads what a RegionClaim was told by arbiters: nothing if somebody else has
// written who holds the region, or changed it since.
func statusIn(obj *unstructured.Unstructured) v1alpha1.RegionClaimStatus {
	if isForeign(obj) {
		return v1alpha1.RegionClaimStatus{}
	}
	return writtenIn(obj)
}

// isForeign says whether what a RegionClaim's status says about who holds the region
// is not what an arbiter has written.
func isForeign(obj *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"phase"}, {"holder", "peer"}, {"holder", "since"}} {
		_, there, _ := unstructured.NestedFieldNoCopy(obj.Object, append([]string{"status"}, path...)...)
		if there && !slices.Contains(loop.StatusManagers(obj, path...), FieldManager) {
			return true
		}
	}
	return false
}

// isReplaced says whether a RegionClaim says no more what arbiters told it: it is foreign,
// or was told mine and says nothing.
func isReplaced(obj *unstructured.Unstructured, mine *report) bool {
	return isForeign(obj) || mine != nil && writtenIn(obj).Phase == ""
}

// writerOf is who wrote the phase of a RegionClaim or, if that is an arbiter's or was
// removed, the holder; empty if that cannot be told.
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

// writtenIn reads a RegionClaim's status, whoever wrote it.
func writtenIn(obj *unstructured.Unstructured) v1alpha1.RegionClaimStatus {
	var s v1alpha1.RegionClaimStatus
	if raw, ok := obj.Object["status"].(map[string]any); ok {
		// What does not convert was written by somebody else, and is replaced.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s)
	}
	return s
}

// boundSince is since when the RegionClaim's status, in that peer, says that it is
// Bound; zero if it does not.
func boundSince(obj *unstructured.Unstructured, peer region.PeerName) time.Time {
	s := statusIn(obj)
	if s.Phase != v1alpha1.RegionClaimBound || s.Holder.Peer != string(peer) {
		return time.Time{}
	}
	return s.Holder.Since.UTC()
}

// identified is what is applied to obj, as it was read: its identity and a status. The
// resourceVersion keeps the write from any other state of the object, and from another
// object of the name: API servers do not look at the UID in writes of a custom
// resource's status.
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

// ownerOf is the ServiceCluster that a RegionClaim was made for.
func ownerOf(claim *unstructured.Unstructured) (metav1.OwnerReference, bool) {
	for _, ref := range claim.GetOwnerReferences() {
		if ref.Kind == "ServiceCluster" && ref.APIVersion == v1alpha1.GroupVersion.String() {
			return ref, true
		}
	}
	return metav1.OwnerReference{}, false
}

// claimFor is the RegionClaim of a ServiceCluster that has none. It goes with it.
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
