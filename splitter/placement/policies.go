// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// policy is a PlacementPolicy, a ClusterPlacementPolicy, or the default policy of the Options.
type policy struct {
	name     string // as in PlacedByAnnotation
	spec     v1alpha1.PlacementPolicySpec
	selector labels.Selector // nil: all divided objects
	err      error
	version  string

	// namespaces selects the namespaces of a ClusterPlacementPolicy; nil: all.
	namespaces labels.Selector
}

func newPolicy(name string, spec v1alpha1.PlacementPolicySpec) policy {
	p := policy{name: name, spec: spec}
	if spec.Selector != nil {
		p.selector, p.err = selectorOf(spec.Selector)
	}
	_, selects := selectorOf(spec.ClusterSelector)
	_, bounds := newSelection(spec, "")
	p.err = cmp.Or(p.err, selects, bounds)
	return p
}

func (p policy) selects(obj *unstructured.Unstructured, divided bool) bool {
	if p.selector == nil {
		return divided
	}
	return p.selector.Matches(labels.Set(obj.GetLabels()))
}

// policies holds the PlacementPolicies of all namespaces, sorted by precedence within each
// namespace, and the ClusterPlacementPolicies under the empty namespace.
type policies struct {
	otherwise *policy // for objects that no policy selects; may be nil
	wide      wide

	mu sync.Mutex
	of map[string][]policy
}

func newPolicies(otherwise *v1alpha1.PlacementPolicySpec) (*policies, error) {
	p := &policies{of: map[string][]policy{}}
	if otherwise != nil {
		d := newPolicy(v1alpha1.PlacedByDefault, *otherwise)
		if d.err != nil {
			return nil, fmt.Errorf("placement: Options.Default: %w", d.err)
		}
		p.otherwise = &d
	}
	return p, nil
}

// set records a policy. A nil obj means that the policy was deleted. set reports whether the spec
// has changed.
func (p *policies) set(key types.NamespacedName, obj *unstructured.Unstructured) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := placedBy(key)
	i := slices.IndexFunc(p.of[key.Namespace], func(q policy) bool { return q.name == name })
	if i >= 0 && obj != nil && p.of[key.Namespace][i].version == versionOf(obj) {
		return false // only the status has changed, and the Controller itself writes the status
	}
	list := slices.DeleteFunc(slices.Clone(p.of[key.Namespace]), func(q policy) bool { return q.name == name })
	if obj != nil {
		list = append(list, readPolicy(name, obj))
	}
	slices.SortFunc(list, func(a, b policy) int {
		return cmp.Or(cmp.Compare(b.spec.Priority, a.spec.Priority), cmp.Compare(a.name, b.name))
	})
	p.of[key.Namespace] = list
	if len(list) == 0 {
		delete(p.of, key.Namespace)
	}
	return true
}

// placedBy returns the value of PlacedByAnnotation for a policy. A ClusterPlacementPolicy has no namespace.
func placedBy(key types.NamespacedName) string {
	if key.Namespace == "" {
		return v1alpha1.PlacedByClusterWide + key.Name
	}
	return key.Name
}

// readPolicy reads a PlacementPolicy, or a ClusterPlacementPolicy, which has a superset of the fields.
func readPolicy(name string, obj *unstructured.Unstructured) policy {
	var typed v1alpha1.ClusterPlacementPolicy
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &typed)
	q := newPolicy(name, typed.Spec.PlacementPolicySpec)
	if of := typed.Spec.NamespaceSelector; of != nil && obj.GetNamespace() == "" {
		selector, misread := selectorOf(of)
		if misread == nil {
			q.namespaces = selector
		}
		err = cmp.Or(err, misread)
	}
	q.err, q.version = cmp.Or(err, q.err), versionOf(obj)
	return q
}

// versionOf identifies the spec of a policy: its UID and generation.
func versionOf(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %d", obj.GetUID(), obj.GetGeneration())
}

// decides returns the policy that selects an object, or false if no policy does: the first one of its namespace, else
// the first ClusterPlacementPolicy, else Options.Default. It fails if a policy that might select the object cannot be
// read. A faulty ClusterPlacementPolicy does no harm to an object that a PlacementPolicy of its namespace selects.
func (p *policies) decides(obj *unstructured.Unstructured, divided bool) (policy, bool, error) {
	p.mu.Lock()
	list := p.of[obj.GetNamespace()]
	p.mu.Unlock()
	for _, q := range list {
		if q.err != nil {
			return policy{}, false, fmt.Errorf("placement: PlacementPolicy %s/%s: %w", obj.GetNamespace(), q.name, q.err)
		}
	}
	for _, q := range list {
		if q.selects(obj, divided) {
			return q, true, nil
		}
	}
	if q, ok, err := p.decidesWide(obj, divided); ok || err != nil {
		return q, ok, err
	}
	if p.otherwise != nil && p.otherwise.selects(obj, divided) {
		return *p.otherwise, true, nil
	}
	return policy{}, false, nil
}
