// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
)

// A decision is kept in a Lease of the central plane: the holder is the peer, acquireTime is when
// the claim was bound, and the Lease never expires.
const (
	// DecisionLabel marks the Leases in which decisions are kept. Its value is "region".
	DecisionLabel = "claim.atoll.dev/decision"

	decisionValue    = "region"
	regionAnnotation = "claim.atoll.dev/region"
	uidAnnotation    = "claim.atoll.dev/uid"

	// microTime is the format of a Lease's times.
	microTime = "2006-01-02T15:04:05.000000Z07:00"
	// maxName is the maximum length of an object's name.
	maxName = 253
)

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// leaseName returns the region's own name, or a hash if the name is too long. No two regions share
// a name: the last dot separates name and provider, and the hash has no dot.
func leaseName(k region.Key) string {
	name := k.String()
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:16])
	return "long" + suffix
}

// decisionIn reads the decision about a region from its Lease.
func decisionIn(lease *unstructured.Unstructured, k region.Key) (decision, error) {
	bad := func(what string) (decision, error) {
		return decision{}, fmt.Errorf("lease %s/%s is not a decision about region %s: %s: delete it if it is not needed",
			lease.GetNamespace(), lease.GetName(), k, what)
	}
	if lease.GetLabels()[DecisionLabel] != decisionValue {
		return bad("it has no label " + DecisionLabel + "=" + decisionValue)
	}
	if lease.GetAnnotations()[regionAnnotation] != k.String() {
		return bad("its annotation " + regionAnnotation + " names another region")
	}
	d := decision{uid: types.UID(lease.GetAnnotations()[uidAnnotation])}
	peer, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	if d.peer = region.PeerName(peer); d.uid == "" || d.peer == "" {
		return bad("spec.holderIdentity and annotation " + uidAnnotation + " must both be set")
	}
	at, _, _ := unstructured.NestedString(lease.Object, "spec", "acquireTime")
	since, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return bad("spec.acquireTime: " + err.Error())
	}
	d.since = since.UTC()
	return d, nil
}

// leaseOf returns a Lease with d. before is the Lease that was read; nil if there was none.
func leaseOf(namespace string, k region.Key, d decision, before *unstructured.Unstructured) *unstructured.Unstructured {
	lease := &unstructured.Unstructured{Object: map[string]any{}}
	transitions := int64(0)
	if before != nil {
		lease = before.DeepCopy()
		transitions, _, _ = unstructured.NestedInt64(before.Object, "spec", "leaseTransitions")
		transitions++
	}
	lease.SetAPIVersion(leases.GroupVersion().String())
	lease.SetKind("Lease")
	lease.SetNamespace(namespace)
	lease.SetName(leaseName(k))
	lease.SetLabels(map[string]string{DecisionLabel: decisionValue})
	lease.SetAnnotations(map[string]string{regionAnnotation: k.String(), uidAnnotation: string(d.uid)})
	lease.Object["spec"] = map[string]any{
		"holderIdentity": string(d.peer), "acquireTime": d.since.UTC().Format(microTime), "leaseTransitions": transitions,
	}
	return lease
}

// records reads and writes the decision about one region.
type records struct {
	client dynamic.ResourceInterface
	ns     string
	key    region.Key
	last   *unstructured.Unstructured // the Lease as it was last read; nil: no Lease
}

func (r *records) read(ctx context.Context) (decision, error) {
	lease, err := r.client.Get(ctx, leaseName(r.key), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.last = nil
		return decision{}, nil
	}
	if err != nil {
		return decision{}, fmt.Errorf("read the decision: %w", err)
	}
	r.last = lease
	return decisionIn(lease, r.key)
}

// write replaces the decision on record, as it was last read, with d. It fails with Conflict,
// NotFound or AlreadyExists if the decision has changed since the read.
func (r *records) write(ctx context.Context, d decision) error {
	lease := leaseOf(r.ns, r.key, d, r.last)
	var err error
	if r.last == nil {
		_, err = r.client.Create(ctx, lease, metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		_, err = r.client.Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write the decision: %w", err)
	}
	return nil
}

// erase deletes the decision on record. It fails if the decision has changed since it was last
// read.
func (r *records) erase(ctx context.Context) error {
	if r.last == nil {
		return nil
	}
	err := r.client.Delete(ctx, r.last.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: new(r.last.GetUID()), ResourceVersion: new(r.last.GetResourceVersion()),
	}})
	if err != nil {
		return fmt.Errorf("delete the decision: %w", err)
	}
	return nil
}

// surpassed reports whether err means that another arbiter changed the decision.
func surpassed(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
