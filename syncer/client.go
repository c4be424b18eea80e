// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// client makes the requests for objects of one type on one side. In a dry run, writes have no effect.
type client struct {
	api    region.API
	gvr    schema.GroupVersionResource
	dryRun []string
}

func (c client) objects(namespace string) dynamic.ResourceInterface {
	return c.api.Dynamic().Resource(c.gvr).Namespace(namespace)
}

// meta returns the client for requests whose responses need the metadata only.
func (c client) meta(namespace string) metadata.ResourceInterface {
	return c.api.Metadata().Resource(c.gvr).Namespace(namespace)
}

// get reads the metadata of an object, live. It returns nil if the object is absent, and an error if the server does
// not serve the type.
func (c client) get(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	obj, err := c.meta(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case isAbsent(err):
		return nil, nil //nolint:nilnil // an absent object is an answer
	case err != nil:
		return nil, err
	}
	return obj, nil
}

// page lists one page of the metadata of the objects in a namespace, or in all namespaces if namespace is "".
func (c client) page(ctx context.Context, namespace string, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.meta(namespace).List(ctx, opts)
}

// probe returns the error of a list of at most one object, to find out whether the type can be listed.
func (c client) probe(ctx context.Context) error {
	_, err := c.page(ctx, "", metav1.ListOptions{Limit: 1})
	return err
}

// apply writes obj by server-side apply.
func (c client) apply(ctx context.Context, obj *unstructured.Unstructured, manager string, force bool, subresources ...string) (*metav1.PartialObjectMetadata, error) {
	data, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return c.applyEncoded(ctx, loop.KeyOf(obj), data, manager, force, subresources...)
}

// applyEncoded does the same as apply, for an object that is already encoded as JSON.
func (c client) applyEncoded(ctx context.Context, key types.NamespacedName, data []byte, manager string, force bool, subresources ...string) (*metav1.PartialObjectMetadata, error) {
	opts := metav1.PatchOptions{FieldManager: manager, Force: &force, DryRun: c.dryRun}
	return c.meta(key.Namespace).Patch(ctx, key.Name, types.ApplyPatchType, data, opts, subresources...)
}

// merge writes fields into the metadata of obj by a merge patch. It returns a Conflict if another object has the name
// of obj now.
func (c client) merge(ctx context.Context, obj metav1.Object, manager string, fields map[string]any) (*metav1.PartialObjectMetadata, error) {
	fields["uid"] = obj.GetUID()
	data, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return c.meta(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager, DryRun: c.dryRun})
}

// remove deletes the object with the UID of obj, and no other object of its name. Its dependents are deleted in the
// background.
func (c client) remove(ctx context.Context, obj metav1.Object) error {
	uid := obj.GetUID()
	return c.removeIf(ctx, obj, metav1.Preconditions{UID: &uid})
}

func (c client) removeIf(ctx context.Context, obj metav1.Object, only metav1.Preconditions) error {
	background := metav1.DeletePropagationBackground
	return c.meta(obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		Preconditions: &only, PropagationPolicy: &background, DryRun: c.dryRun,
	})
}

// createNamespace creates a namespace with the owner label, whose value is owner. The label lets the syncer delete the
// namespace later. An existing namespace is no error, and stays as it is: then created is false.
func (c client) createNamespace(ctx context.Context, name, owner string) (created bool, err error) {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{ownerLabel: owner},
	}}}
	_, err = c.api.Dynamic().Resource(namespaces).Create(ctx, ns, metav1.CreateOptions{FieldManager: manager, DryRun: c.dryRun})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, wrap("create namespace "+name, err)
}

// each lists, page by page, the objects that the label selector labels selects in a namespace, or in all namespaces if
// namespace is "". It calls do for each object, and returns the first error.
func (c client) each(ctx context.Context, namespace, labels string, do func(*metav1.PartialObjectMetadata) error) error {
	opts := metav1.ListOptions{LabelSelector: labels, Limit: 500}
	for {
		page, err := c.page(ctx, namespace, opts)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := do(&page.Items[i]); err != nil {
				return err
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
}
