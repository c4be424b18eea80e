// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// targetFinalizer keeps a SyncTarget until its upstream objects are released.
const targetFinalizer = "syncer.atoll.dev/synctarget"

// hasFinalizer reports whether a SyncTarget has our finalizer.
func hasFinalizer(target *v1alpha1.SyncTarget) bool {
	return slices.Contains(target.Finalizers, targetFinalizer)
}

// addFinalizer adds our finalizer to a SyncTarget.
func (c *Controller) addFinalizer(ctx context.Context, target *v1alpha1.SyncTarget) error {
	if hasFinalizer(target) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SyncTarget",
		"metadata": map[string]any{"name": target.Name, "uid": string(target.UID), "finalizers": []any{targetFinalizer}},
	}}
	_, err := c.up.Dynamic().Resource(synctarget.Resource).Apply(ctx, target.Name, want, metav1.ApplyOptions{FieldManager: synctarget.Manager, Force: true})
	if err != nil {
		return fmt.Errorf("add the finalizer to SyncTarget %s: %w", target.Name, err)
	}
	return nil
}

// removeFinalizer removes our finalizer from a SyncTarget.
func (c *Controller) removeFinalizer(ctx context.Context, target *v1alpha1.SyncTarget) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": target.UID, "resourceVersion": target.ResourceVersion,
		"finalizers": slices.DeleteFunc(slices.Clone(target.Finalizers), func(f string) bool { return f == targetFinalizer }),
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	_, err = c.up.Dynamic().Resource(synctarget.Resource).Patch(ctx, target.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: synctarget.Manager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the finalizer of SyncTarget %s: %w", target.Name, err)
	}
	return nil
}
