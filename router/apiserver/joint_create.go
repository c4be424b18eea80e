// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
)

// Create adds an object. The regions first create it in a dry run. With a subresource, it is the region's own write.
func (r jointResource) Create(ctx context.Context, o *unstructured.Unstructured, opts metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if len(sub) > 0 {
		return r.ResourceInterface.Create(ctx, o, opts, sub...)
	}
	dry, only, err := onlyDry(opts.DryRun)
	if err != nil {
		return nil, err
	}
	if err := r.creatable(o); err != nil {
		return nil, err
	}
	opts.DryRun = dry
	made, taken, err := r.tryEverywhere(o.GetName(), func(in dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return in.Create(ctx, o.DeepCopy(), opts)
	})
	switch {
	case err != nil:
		return nil, err
	case only && taken != nil:
		return nil, taken
	case only:
		return made, nil
	}
	if taken != nil {
		// The name is taken in this region. If that is by a reservation, the Fanout decides.
		found, err := r.joint.fanout.Find(ctx, r.joint.kind, r.key(o.GetName()))
		if err != nil {
			return nil, r.joint.failed("created", o.GetName(), err)
		}
		if there := found.Objects[r.at.Peer]; there != nil && (len(found.Homes) > 0 || !r.joint.kind.Claimed(there)) {
			return nil, taken
		}
		made = o
	}
	return r.add(ctx, made, opts.FieldManager)
}

// creatable returns an error if the new object has fields that a Fanout does not carry into the peers.
func (r jointResource) creatable(o *unstructured.Unstructured) error {
	if o.GetName() == "" {
		return bad("metadata.generateName: the name must be given, because all regions hold it: set metadata.name")
	}
	for path := range r.joint.kind.Claims(o) {
		return r.invalid(o.GetName(), path, "only the gateway writes it")
	}
	switch {
	case len(o.GetFinalizers()) > 0:
		return r.invalid(o.GetName(), "metadata.finalizers", "add them to the object of a region after it is created")
	case len(o.GetOwnerReferences()) > 0:
		return r.invalid(o.GetName(), "metadata.ownerReferences", "the regions have different owners; add them to the object of a region after it is created")
	}
	return nil
}

// invalid returns a 422 for a field.
func (r jointResource) invalid(name, path, why string) error {
	k := r.joint.kind
	return apierrors.NewInvalid(schema.GroupKind{Group: k.Resource.Group, Kind: k.Kind}, name,
		field.ErrorList{field.Forbidden(field.NewPath(path), why)})
}

// add runs the operation that adds o, and returns the object of the region.
func (r jointResource) add(ctx context.Context, o *unstructured.Unstructured, manager string) (*unstructured.Unstructured, error) {
	if err := r.joint.fanout.Add(ctx, r.joint.kind, o, r.at.Peer, manager); err != nil {
		return nil, r.joint.failed("created", o.GetName(), err)
	}
	r.own(ctx, o, false) // not the managers of the dry run: it did not know the fields that the Fanout added
	return r.present(ctx, o), nil
}

// present returns the object as the region has it now. If the caller cannot read it, it returns the result of the dry
// run, without the metadata that only a stored object has.
func (r jointResource) present(ctx context.Context, tried *unstructured.Unstructured) *unstructured.Unstructured {
	if o, err := r.ResourceInterface.Get(ctx, tried.GetName(), metav1.GetOptions{}); err == nil {
		return o
	}
	o := tried.DeepCopy()
	for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	return o
}
