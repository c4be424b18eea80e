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

// undivided has the objects that belong to a workload and that the Controller does not place. The status of a policy lists
// them. Some have numbers, such as maxReplicas, that each cluster would apply to its own part of the workload; those with
// the Splitter's finalizer are divided and not listed. The others grant rights to the ServiceAccounts of the pods.
type undivided struct {
	caches []*loop.Objects

	mu sync.Mutex
	of map[string]map[undividedID]belonging // by namespace; under "": objects without a namespace
}

// undividedID identifies an object within its namespace.
type undividedID struct {
	kind, name string
	grants     bool // the object grants rights
}

// belonging reports whether an object belongs to a workload.
type belonging func(workload) bool

var (
	autoscalers = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	budgets     = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
)

// undividedType is a type whose objects the Controller does not place.
type undividedType struct {
	schema.GroupVersionResource
	kind   string
	strip  func(*unstructured.Unstructured)
	read   func(*unstructured.Unstructured) belonging
	grants bool
}

// undividedTypes returns the types of undivided objects: PodDisruptionBudgets, HorizontalPodAutoscalers, the declared
// types whose objects scale workloads, RoleBindings and ClusterRoleBindings.
func undividedTypes(listed []*declared.Type) []undividedType {
	all := []undividedType{{GroupVersionResource: budgets.WithVersion("v1"), kind: "PodDisruptionBudget", strip: stripOther(budgets), read: limits}}
	for _, t := range bindingTypes {
		all = append(all, undividedType{GroupVersionResource: t.resource.WithVersion("v1"), kind: t.kind, strip: stripBinding, read: binds, grants: true})
	}
	for _, of := range append(slices.Clone(listed), declared.BuiltinType(autoscalers.Resource)) {
		if of.Scales() {
			all = append(all, undividedType{GroupVersionResource: of.Resource(), kind: of.GroupKind().Kind, strip: stripDeclared(of), read: scales(of)})
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
				u.set(key.Namespace, undividedID{t.kind, key.Name, t.grants}, belongs)
				if key.Namespace == "" {
					c.allPolicies()
				} else {
					c.policiesIn(key.Namespace)
				}
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

// any reports whether there are undivided objects that may belong to workloads of a namespace.
func (u *undivided) any(namespace string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.of[namespace]) > 0 || len(u.of[""]) > 0
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

// belonging returns the objects that belong to one of the workloads, sorted, each with its workload: those whose numbers are
// not divided, and those that grant rights. policy is the namespace of the policy, empty for a ClusterPlacementPolicy. Then
// the names have their namespaces.
func (u *undivided) belonging(policy string, workloads []workload) (numbers, grants []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range workloads {
		prefix := ""
		if policy == "" {
			prefix = w.in + "/"
		}
		for _, namespace := range []string{w.in, ""} {
			for id, belongs := range u.of[namespace] {
				if !belongs(w) {
					continue
				}
				name := id.name
				if namespace != "" {
					name = prefix + name
				}
				text := fmt.Sprintf("%s %s (of %s %s%s)", id.kind, name, w.identity.kind.Kind, prefix, w.identity.name)
				if id.grants {
					grants = append(grants, text)
				} else {
					numbers = append(numbers, text)
				}
			}
		}
	}
	slices.Sort(numbers)
	slices.Sort(grants)
	return numbers, grants
}

// dependentsPlaced returns the condition DependentsPlaced of a policy that places dependents. While workloads or objects
// are not known, for example after a restart, it returns the present condition, if the policy has it.
func (c *Controller) dependentsPlaced(obj *unstructured.Unstructured) []any {
	unread := c.undivided.err()
	workloads := !slices.ContainsFunc(c.kinds, func(k *kind) bool { return k.divided && k.objects.Err() != nil })
	switch before := declared.Condition(obj, string(v1alpha1.ConditionDependentsPlaced)); {
	case apierrors.IsForbidden(unread), unread == nil && workloads:
		workloads := c.index.placedBy(loop.KeyOf(obj))
		numbers, grants := c.undivided.belonging(obj.GetNamespace(), workloads)
		return []any{dependentsVerdict(obj, numbers, grants, unread)}
	case before != nil:
		return []any{before}
	default:
		return nil
	}
}

// dependentsVerdict returns the condition DependentsPlaced of a policy that places dependents. numbers and grants are the
// objects that are not placed, as belonging returns them. err is not nil if the Controller may not read such objects.
func dependentsVerdict(obj *unstructured.Unstructured, numbers, grants []string, err error) map[string]any {
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonComplete, "every object that belongs to the workloads is placed with them"
	switch {
	case err != nil:
		status, reason, message = metav1.ConditionUnknown, v1alpha1.ReasonPending, "the objects that are not placed are not known: "+err.Error()
	case len(numbers) > 0 || len(grants) > 0:
		status, reason = metav1.ConditionFalse, v1alpha1.ReasonUndivided
		if len(numbers) == 0 {
			reason = v1alpha1.ReasonRightsNotPlaced
		}
		var parts []string
		if len(numbers) > 0 {
			parts = append(parts, few(numbers)+": they are in no cluster, because their numbers are not divided: create one for the shard in each cluster")
		}
		if len(grants) > 0 {
			parts = append(parts, few(grants)+": they are in no cluster, because they grant rights: grant these rights to the ServiceAccounts in each cluster")
		}
		message = strings.Join(parts, "; ")
	}
	return condition(obj, v1alpha1.ConditionDependentsPlaced, status, reason, message)
}

// few joins the first ten texts and the number of the others.
func few(list []string) string {
	const most = 10
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
