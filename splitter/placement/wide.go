// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var (
	gvrOfWide       = v1alpha1.GroupVersion.WithResource("clusterplacementpolicies")
	gvrOfNamespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// errNotKnown means that a ClusterPlacementPolicy may select an object, but these policies or the labels of the object's
// namespace are not known yet. The object stays as it is until they are.
var errNotKnown = errors.New("placement: cluster-wide policies are not known yet")

// wide has caches of the ClusterPlacementPolicies and the namespaces. If the API server does not serve one of the two
// types, the cache of the type is empty and counts as fresh.
type wide struct {
	policies, namespaces *loop.Objects

	// listed has the labels of the namespaces if they were read once instead of watched. A missing one has no labels.
	listed map[string]labels.Set
}

func (c *Controller) newWide() wide {
	return wide{
		policies: loop.NewObjects(c.up.Dynamic(), gvrOfWide, loop.ObjectsOptions{
			Strip: loop.KeepManager(Manager), Changed: c.policyChanged, Indexed: true, Flows: c.all,
		}),
		namespaces: loop.NewObjects(c.up.Dynamic(), gvrOfNamespaces, loop.ObjectsOptions{
			Packed: true, Strip: stripNamespace, Changed: c.namespaceChanged, Flows: c.all,
		}),
	}
}

func stripNamespace(obj *unstructured.Unstructured) {
	stripMetadata(obj)
	delete(obj.Object, "spec")
	delete(obj.Object, "status")
}

// namespaceChanged requeues the objects of a namespace, since a namespaceSelector may now select it or no longer do so.
func (c *Controller) namespaceChanged(key types.NamespacedName) {
	if !c.policies.selectNamespaces() {
		return
	}
	for _, k := range c.kinds {
		c.addAll(k, key.Name)
	}
}

// known reports whether all ClusterPlacementPolicies are known.
func (w wide) known() bool { return w.policies == nil || served(w.policies.Err()) }

// labels returns the labels of a namespace, false if they are not known.
func (w wide) labels(namespace string) (labels.Set, bool) {
	if w.listed != nil {
		return w.listed[namespace], true
	}
	if w.namespaces == nil {
		return nil, false
	}
	obj, ok := w.namespaces.Get(types.NamespacedName{Name: namespace})
	switch err := w.namespaces.Err(); {
	case err == nil && ok:
		return obj.GetLabels(), true
	case apierrors.IsNotFound(err): // the API server does not serve namespaces: all count as without labels
		return nil, true
	}
	return nil, false
}

// served reports whether a cache is fresh, or the API server does not serve its type.
func served(err error) bool { return err == nil || apierrors.IsNotFound(err) }

// selectNamespaces reports whether a ClusterPlacementPolicy has a namespaceSelector.
func (p *policies) selectNamespaces() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range p.of[""] {
		if q.namespaces != nil {
			return true
		}
	}
	return false
}

// decidesWide returns the ClusterPlacementPolicy that selects an object, or false if none does.
func (p *policies) decidesWide(obj *unstructured.Unstructured, divided bool) (policy, bool, error) {
	if !p.wide.known() {
		return policy{}, false, errNotKnown
	}
	p.mu.Lock()
	list := p.of[""]
	p.mu.Unlock()
	var here []policy
	for _, q := range list {
		if q.namespaces != nil {
			of, known := p.wide.labels(obj.GetNamespace())
			if !known {
				return policy{}, false, errNotKnown
			}
			if !q.namespaces.Matches(of) {
				continue
			}
		}
		if q.err != nil {
			return policy{}, false, fmt.Errorf("placement: %s: %w", q.name, q.err)
		}
		here = append(here, q)
	}
	for _, q := range here {
		if q.selects(obj, divided) {
			return q, true, nil
		}
	}
	return policy{}, false, nil
}
