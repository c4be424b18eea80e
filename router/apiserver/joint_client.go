// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/router"
)

// jointClient is the caller's client of one region. Its writes of the registered kind are operations of the Fanout.
type jointClient struct {
	dynamic.Interface
	joint *joint
	at    router.Route
}

func (c jointClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	client := c.Interface.Resource(gvr)
	if gvr.GroupResource() != c.joint.kind.Resource.GroupResource() {
		return client
	}
	return jointResource{ResourceInterface: client, resource: client, joint: c.joint, at: c.at}
}

// jointResource writes the registered kind as the caller of one region.
type jointResource struct {
	dynamic.ResourceInterface
	resource  dynamic.NamespaceableResourceInterface
	joint     *joint
	at        router.Route
	namespace string
}

func (r jointResource) Namespace(namespace string) dynamic.ResourceInterface {
	r.ResourceInterface, r.namespace = r.resource, namespace
	if namespace != "" {
		r.ResourceInterface = r.resource.Namespace(namespace)
	}
	return r
}

func (r jointResource) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace, Name: name}
}

// onlyDry returns the options of a dry run in place of the caller's, and whether the caller asked for a dry run.
func onlyDry(given []string) (dry []string, only bool, err error) {
	if slices.ContainsFunc(given, func(d string) bool { return d != metav1.DryRunAll }) {
		return nil, false, bad("dryRun: want %s", metav1.DryRunAll)
	}
	return []string{metav1.DryRunAll}, len(given) > 0, nil
}

// Update changes an object. With a subresource, it is the region's own write.
func (r jointResource) Update(ctx context.Context, o *unstructured.Unstructured, opts metav1.UpdateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if len(sub) > 0 {
		return r.ResourceInterface.Update(ctx, o, opts, sub...)
	}
	dry, only, err := onlyDry(opts.DryRun)
	if err != nil {
		return nil, err
	}
	return r.change(ctx, change{verb: "update", name: o.GetName(), dry: dry, only: only,
		write: func(in dynamic.ResourceInterface, how manner) (*unstructured.Unstructured, error) {
			o, err := how.object(o)
			if err != nil {
				return nil, err
			}
			opts := opts
			opts.DryRun = how.dry
			return in.Update(ctx, o, opts)
		}})
}

// Patch changes an object, or creates it by server-side apply. With a subresource, it is the region's own write.
func (r jointResource) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if len(sub) > 0 {
		return r.ResourceInterface.Patch(ctx, name, kind, data, opts, sub...)
	}
	dry, only, err := onlyDry(opts.DryRun)
	if err != nil {
		return nil, err
	}
	c := change{verb: "patch", name: name, dry: dry, only: only,
		write: func(in dynamic.ResourceInterface, how manner) (*unstructured.Unstructured, error) {
			opts := opts
			if opts.DryRun = how.dry; how.force {
				opts.Force = &how.force
			}
			data, err := how.patch(kind, data)
			if err != nil {
				return nil, err
			}
			return in.Patch(ctx, name, kind, data, opts)
		}}
	if kind == types.ApplyYAMLPatchType {
		c.applies, c.manager = true, opts.FieldManager
	}
	return r.change(ctx, c)
}

// DeleteCollection is refused: a Handler refuses such requests before.
func (r jointResource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return fmt.Errorf("deletecollection of %s", r.joint.kind.Kind)
}
