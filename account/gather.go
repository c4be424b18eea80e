// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// Entry is one object of a catalogue, with its regions.
type Entry struct {
	Resource schema.GroupVersionResource
	// Regions are the regions of the object, sorted; see GatherOptions.Origin. The list is empty if
	// the object's peer serves none.
	Regions []region.Key
	// Object is the object without fields that name peers: managed fields, claim, and annotations
	// and finalizers of Atoll.
	Object *unstructured.Unstructured
}

// Gathered is the result of Gather: a catalogue of the objects in all peers.
type Gathered struct {
	// Entries are sorted by resource, namespace, name and regions.
	Entries []Entry
	// Unanswered are the regions whose peers could not be read, sorted. Their objects may exist
	// and are not among the Entries.
	Unanswered []region.Key
}

// GatherOptions tune one Gather. The zero value requires all peers.
type GatherOptions struct {
	// Policy is how many peers must answer; the zero value is region.All.
	Policy region.Policy
	// ListOptions select the objects to gather; Limit is the number of objects per request, zero:
	// 500.
	ListOptions metav1.ListOptions
	// Origin returns the regions of an object, out of the regions that its peer serves. It must be
	// pure. Nil takes the first of these that is not empty: the region that has the object's name
	// and, as its provider, the object's namespace, as for a ServiceCluster; all regions of the
	// provider with the name of the namespace; all regions that the peer serves.
	Origin func(obj *unstructured.Unstructured, served []region.Key) []region.Key
}

// Gather lists resources in all peers and returns the regions of each object instead of its peer.
// An object that fan-out keeps in several peers is listed once, from its primary, while it is in
// effect: from its commit until the commit of its removal. A peer that does not serve a resource
// has no objects of it.
//
// The error is nil when the policy is met. Otherwise it is a *region.PartialError, which names
// peers and is not for tenants. Gathered is valid in both cases. Gather blocks until every peer
// has answered or ctx has ended, and writes nothing.
func Gather(ctx context.Context, d region.Directory, resources []schema.GroupVersionResource, opts GatherOptions) (*Gathered, error) {
	if argument.Missing(d) {
		return nil, errors.New("account: directory is nil: pass a region.Ring or region.Fixed(...)")
	}
	for i, r := range resources {
		if r.Version == "" || r.Resource == "" {
			return nil, fmt.Errorf("account: resources[%d] is %q: Version and Resource are required", i, r)
		}
	}
	if opts.ListOptions.Limit == 0 {
		opts.ListOptions.Limit = 500
	}
	if opts.Origin == nil {
		opts.Origin = originOf
	}
	snapshot := d.Snapshot()
	results, err := region.Each(ctx, d, "gather", opts.Policy, func(ctx context.Context, c *region.Conn) ([]Entry, error) {
		var served []region.Key
		if p, ok := snapshot.Peer(c.Peer()); ok {
			served = p.Regions
		}
		var all []Entry
		for _, resource := range resources {
			entries, err := gatherPeer(ctx, c, resource, served, opts)
			if err != nil {
				return nil, err
			}
			all = append(all, entries...)
		}
		return all, nil
	})
	g := &Gathered{}
	for o := range results.All() {
		if o.Err == nil {
			g.Entries = append(g.Entries, o.Value...)
			continue
		}
		if p, ok := snapshot.Peer(o.Peer); ok {
			g.Unanswered = append(g.Unanswered, p.Regions...)
		}
	}
	slices.SortFunc(g.Unanswered, region.Key.Compare)
	slices.SortStableFunc(g.Entries, compareEntries)
	return g, err
}

// gatherPeer lists one resource in one peer, all pages.
func gatherPeer(ctx context.Context, c *region.Conn, resource schema.GroupVersionResource, served []region.Key, opts GatherOptions) ([]Entry, error) {
	var entries []Entry
	list := opts.ListOptions
	for {
		page, err := c.Dynamic().Resource(resource).List(ctx, list)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			obj := &page.Items[i]
			if skipped(obj) {
				continue
			}
			regions := slices.Clone(opts.Origin(obj, slices.Clone(served)))
			slices.SortFunc(regions, region.Key.Compare)
			entries = append(entries, Entry{Resource: resource, Regions: regions, Object: hide(obj)})
		}
		if list.Continue = page.GetContinue(); list.Continue == "" {
			return entries, nil
		}
	}
}

// skipped reports whether Gather must skip an object, because it is not in effect, is a guard, or
// is a replica.
func skipped(obj *unstructured.Unstructured) bool {
	kind := Kind()
	state, err := kind.State(obj)
	if err != nil || state == nil || state.Claim == nil {
		return false
	}
	return !isHome(state) || state.Stage == fanoutv1alpha1.StageReserved || state.Stage == fanoutv1alpha1.StageRemoving
}

// hide removes the fields that name peers from obj, and returns obj.
func hide(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetManagedFields(nil)
	unstructured.RemoveNestedField(obj.Object, "spec", "fanout")
	annotations := obj.GetAnnotations()
	for key := range annotations {
		if key == OriginAnnotation || strings.HasPrefix(key, "fanout.atoll.dev/") {
			delete(annotations, key)
		}
	}
	obj.SetAnnotations(annotations)
	obj.SetFinalizers(slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool { return strings.Contains(f, "atoll.dev/") }))
	return obj
}

// originOf is the default of GatherOptions.Origin.
func originOf(obj *unstructured.Unstructured, served []region.Key) []region.Key {
	namespace := obj.GetNamespace()
	if i := slices.Index(served, region.Key{Provider: namespace, Name: obj.GetName()}); i >= 0 {
		return served[i : i+1]
	}
	var own []region.Key
	for _, k := range served {
		if k.Provider == namespace {
			own = append(own, k)
		}
	}
	if len(own) > 0 {
		return own
	}
	return served
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(a.Resource.String(), b.Resource.String()),
		cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()),
		cmp.Compare(a.Object.GetName(), b.Object.GetName()),
		slices.CompareFunc(a.Regions, b.Regions, region.Key.Compare),
	)
}
