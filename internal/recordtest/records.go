// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package recordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// stateLabel repeats spec.state.
const stateLabel = "fanout.atoll.dev/state"

// Records are the records in a central plane.
type Records struct{ client dynamic.ResourceInterface }

// In returns the records of a central plane.
func In(api region.API) Records {
	return Records{api.Dynamic().Resource(v1alpha1.GroupVersion.WithResource("operations"))}
}

// Propose creates the record of e, in the state Pending. e.Key must be "operation/" and e.ID, or
// empty.
func (r Records) Propose(ctx context.Context, e wal.Entry) (wal.Decision, error) {
	o := &v1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Name: e.ID, Labels: map[string]string{stateLabel: string(v1alpha1.OperationPending)}},
		Spec: v1alpha1.OperationSpec{
			Operation: e.ID, Kind: e.Kind, Key: e.Key, Holder: e.Owner, Step: e.State, Payload: e.Data, Write: "first-release",
			Began: e.Began.UTC().Format(time.RFC3339Nano), State: v1alpha1.OperationPending,
		},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return wal.Decision{}, err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Operation"))
	return decision(r.client.Create(ctx, u, metav1.CreateOptions{}))
}

// Decide commits the record of id for the object uid in the peer target, if the resourceVersion of
// the record is still version.
func (r Records) Decide(ctx context.Context, id, version, target, uid string) (wal.Decision, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "labels": map[string]any{stateLabel: v1alpha1.OperationCommitted}},
		"spec":     map[string]any{"state": v1alpha1.OperationCommitted, "target": target, "targetUID": uid},
	})
	if err != nil {
		return wal.Decision{}, err
	}
	return decision(r.client.Patch(ctx, id, types.MergePatchType, body, metav1.PatchOptions{}))
}

// decision returns the record as the log of this release does, except that Version is its
// resourceVersion.
func decision(u *unstructured.Unstructured, err error) (wal.Decision, error) {
	if err != nil {
		return wal.Decision{}, err
	}
	o := &v1alpha1.Operation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return wal.Decision{}, fmt.Errorf("operation %s: %w", u.GetName(), err)
	}
	return wal.Decision{
		ID: o.Name, UID: string(o.UID), Version: o.ResourceVersion, Owner: o.Spec.Holder, Decided: o.Spec.State == v1alpha1.OperationCommitted,
		Target: o.Spec.Target, TargetUID: string(o.Spec.TargetUID),
	}, nil
}
