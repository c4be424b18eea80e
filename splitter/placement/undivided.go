// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/selector"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// undivided has the objects that belong to a workload and that the Controller does not place, because each cluster would
// apply their numbers to its own part of the workload. Those with the Splitter's finalizer are divided. The status of a
// policy lists the others.
type undivided struct {
	caches []*loop.Objects

	mu sync.Mutex
	of map[string]map[undividedID]belonging
}

// undividedID identifies an object within its namespace.
type undividedID struct{ kind, name string }

// belonging reports whether an object belongs to a workload.
type belonging func(workload) bool

var (
	autoscalers = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	budgets     = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
)

// undividedType is a type whose objects the Controller does not place.
type undividedType struct {
	schema.GroupVersionResource
	kind  string
	strip func(*unstructured.Unstructured)
	read  func(*unstructured.Unstructured) belonging
}

// undividedTypes returns the types of undivided objects: PodDisruptionBudgets, HorizontalPodAutoscalers, and the declared
// types whose objects scale workloads.
func undividedTypes(listed []*declared.Type) []undividedType {
	all := []undividedType{{budgets.WithVersion("v1"), "PodDisruptionBudget", stripOther(budgets), limits}}
	for _, of := range append(slices.Clone(listed), declared.BuiltinType(autoscalers.Resource)) {
		if of.Scales() {
			all = append(all, undividedType{of.Resource(), of.GroupKind().Kind, stripDeclared(of), scales(of)})
		}
	}
	return all
}

// scales returns a func that reads an object of a declared type, and returns whether it scales a workload.
func scales(of *declared.Type) func(*unstructured.Unstructured) belonging {
	return func(obj *unstructured.Unstructured) belonging {
		kind, name, ok := of.ScaleTarget(obj)
		target := identity{kind, name}
		return func(w workload) bool { return ok && w.identity == target }
	}
}

// limits returns whether a PodDisruptionBudget selects the pods of a workload.
func limits(obj *unstructured.Unstructured) belonging {
	selects := labels.Nothing() // as without a selector
	if content, ok, _ := unstructured.NestedMap(obj.Object, "spec", "selector"); ok {
		selects = selector.Read(content)
	}
	return func(w workload) bool { return w.runs(selected(selects)) }
}

// newUndivided returns the objects of the undividedTypes that are not in placed.
func (c *Controller) newUndivided(placed map[schema.GroupResource]bool, listed []*declared.Type) *undivided {
	u := &undivided{of: map[string]map[undividedID]belonging{}}
	for _, t := range undividedTypes(listed) {
		if placed[t.GroupResource()] {
			continue
		}
		var cache *loop.Objects
		cache = loop.NewObjects(c.up.Dynamic(), t.GroupVersionResource, loop.ObjectsOptions{
			Packed: true, Strip: t.strip, Flows: c.allPolicies,
			Changed: func(key types.NamespacedName) {
				var belongs belonging
				if obj, ok := cache.Get(key); ok && !foreign(obj, true) && !slices.Contains(obj.GetFinalizers(), v1alpha1.ShardsFinalizer) {
					belongs = t.read(obj)
				}
				u.set(key.Namespace, undividedID{t.kind, key.Name}, belongs)
				c.policiesIn(key.Namespace)
			},
		})
		u.caches = append(u.caches, cache)
	}
	return u
}

// set records an object, or that it is gone if belongs is nil.
func (u *undivided) set(namespace string, id undividedID, belongs belonging) {
	u.mu.Lock()
	defer u.mu.Unlock()
	in := u.of[namespace]
	delete(in, id)
	if belongs != nil {
		if in == nil {
			in = map[undividedID]belonging{}
			u.of[namespace] = in
		}
		in[id] = belongs
	}
	if len(in) == 0 {
		delete(u.of, namespace)
	}
}

// any reports whether a namespace has such objects.
func (u *undivided) any(namespace string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.of[namespace]) > 0
}

// err returns why the objects are not all known; nil if they are. The API server may not serve all types: it has no
// objects of the others.
func (u *undivided) err() error {
	for _, cache := range u.caches {
		if err := cache.Err(); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// belonging returns the objects that belong to one of the workloads, sorted, each with its workload. policy is the
// namespace of the policy. If it is empty, the names have their namespaces.
func (u *undivided) belonging(policy string, workloads []workload) (list []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range workloads {
		prefix := ""
		if policy == "" {
			prefix = w.in + "/"
		}
		for id, belongs := range u.of[w.in] {
			if belongs(w) {
				list = append(list, fmt.Sprintf("%s %s%s (of %s %s%s)", id.kind, prefix, id.name, w.identity.kind.Kind, prefix, w.identity.name))
			}
		}
	}
	slices.Sort(list)
	return list
}

// dependentsPlaced returns the condition DependentsPlaced of a policy that places dependents. While workloads or objects
// are not known, for example after a restart, it returns the present condition, if the policy has it.
func (c *Controller) dependentsPlaced(obj *unstructured.Unstructured) []any {
	unread := c.undivided.err()
	workloads := !slices.ContainsFunc(c.kinds, func(k *kind) bool { return k.divided && k.objects.Err() != nil })
	switch before := declared.Condition(obj, string(v1alpha1.ConditionDependentsPlaced)); {
	case apierrors.IsForbidden(unread), unread == nil && workloads:
		workloads := c.index.placedBy(loop.KeyOf(obj))
		left := c.undivided.belonging(obj.GetNamespace(), workloads)
		return []any{dependentsVerdict(obj, left, unread)}
	case before != nil:
		return []any{before}
	default:
		return nil
	}
}

// dependentsVerdict returns the condition DependentsPlaced of a policy that places dependents. left are the objects that
// are not placed, and err is why they may not be read.
func dependentsVerdict(obj *unstructured.Unstructured, left []string, err error) map[string]any {
	const few = 10
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonComplete, "every object that belongs to the workloads is placed with them"
	switch {
	case err != nil:
		status, reason, message = metav1.ConditionUnknown, v1alpha1.ReasonPending, "the objects that are not placed are not known: "+err.Error()
	case len(left) > 0:
		more := ""
		if len(left) > few {
			left, more = left[:few], fmt.Sprintf(", and %d more", len(left)-few)
		}
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonUndivided
		message = strings.Join(left, ", ") + more + ": they are in no cluster, because their numbers are not divided: create one for the shard in each cluster"
	}
	return condition(obj, v1alpha1.ConditionDependentsPlaced, status, reason, message)
}
