// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Label marks the Leases of a group; its value is the group.
const Label = "region.atoll.dev/shard-group"

// FieldManager is the field manager of the writes of Leases.
const FieldManager = "atoll-shard"

var leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

func leaseName(group, identity string) string { return group + "-" + identity }

// renewal is one attempt to renew this replica's Lease.
type renewal struct {
	begun   time.Time
	uid     types.UID
	version string // the resourceVersion after the renewal
	err     error
}

// renew creates or renews this replica's Lease.
func (m *Members) renew(ctx context.Context) renewal {
	r := renewal{begun: time.Now()}
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": leases.GroupVersion().String(), "kind": "Lease",
		"metadata": map[string]any{
			"name": leaseName(m.group, m.opts.Identity), "namespace": m.namespace,
			"labels": map[string]any{Label: m.group},
		},
		"spec": map[string]any{
			"holderIdentity":       m.holder,
			"leaseDurationSeconds": int64(math.Ceil(m.opts.Lease.Seconds())),
			"renewTime":            r.begun.UTC().Format(metav1.RFC3339Micro),
		},
	}}
	ctx, cancel := context.WithTimeout(ctx, m.opts.Lease/3)
	defer cancel()
	written, err := m.client.Apply(ctx, lease.GetName(), lease, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		r.err = fmt.Errorf("shard: renew Lease %s/%s: %w", m.namespace, lease.GetName(), err)
		return r
	}
	r.uid, r.version = written.GetUID(), written.GetResourceVersion()
	return r
}

// remove deletes a Lease under the given preconditions.
func (m *Members) remove(ctx context.Context, name string, only metav1.Preconditions) error {
	ctx, cancel := context.WithTimeout(ctx, m.opts.Lease/3)
	defer cancel()
	if err := m.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &only}); err != nil {
		return fmt.Errorf("shard: delete Lease %s/%s: %w", m.namespace, name, err)
	}
	return nil
}

// durationOf returns how long a Lease lives after a renewal: the duration in its spec, or the given default if
// the spec has no valid one.
func durationOf(lease *unstructured.Unstructured, otherwise time.Duration) time.Duration {
	seconds, ok, err := unstructured.NestedInt64(lease.Object, "spec", "leaseDurationSeconds")
	if err != nil || !ok || seconds < 1 || seconds > int64(time.Hour/time.Second) {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}

func holderOf(lease *unstructured.Unstructured) string {
	holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return holder
}
