// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Differs reports whether [Apply] would make a request.
func Differs(current, desired *unstructured.Unstructured, manager string, subresources ...string) bool {
	return current == nil || differs(current, desired, manager, subresources)
}

// Owns reports whether, in current, manager owns each field of desired, whatever the value: manager
// has applied the field, and no other client has changed it since. This holds even if the server
// rewrites values. Owns ignores fields whose owner cannot be determined: empty maps and lists,
// which have no owner, and list items without their keys. The managedFields of current must contain
// the entry of manager; without it, Owns returns false.
func Owns(current, desired *unstructured.Unstructured, manager string) bool {
	owned, ok := ownedBy(current, desired.GetAPIVersion(), manager, "")
	return ok && covers(owned, appliedFields(desired))
}

// OwnsPath reports whether, in current, manager owns the field at that path, or a field below it.
func OwnsPath(current *unstructured.Unstructured, manager string, path ...string) bool {
	owned, ok := ownedBy(current, current.GetAPIVersion(), manager, "")
	for i, name := range path {
		at := fieldpath.FieldNameElement(name)
		if !ok || owned.Members.Has(at) {
			return ok
		}
		child, found := owned.Children.Get(at)
		if !found {
			return false
		}
		if i == len(path)-1 {
			return !child.Empty()
		}
		owned = child
	}
	return ok
}

// covers reports whether owned has all fields of desired, as far as that can be determined.
func covers(owned *fieldpath.Set, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		for name, v := range desired {
			if !coversAt(owned, fieldpath.FieldNameElement(name), v) {
				return false
			}
		}
	case []any:
		kind, ok := anyElement(owned)
		if !ok {
			return len(desired) == 0
		}
		for _, v := range desired {
			if at, ok := elementOf(v, kind); ok && !coversAt(owned, at, v) {
				return false
			}
		}
	}
	return true
}

func coversAt(owned *fieldpath.Set, at fieldpath.PathElement, desired any) bool {
	if below, ok := owned.Children.Get(at); ok && !below.Empty() {
		return covers(below, desired)
	}
	return owned.Members.Has(at) || holdsNothing(desired)
}

// holdsNothing reports whether v has no value that could have an owner.
func holdsNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !holdsNothing(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// differs reports whether applying desired would change current: a field has another value, is not
// owned by manager, or is owned and no longer desired.
func differs(current, desired *unstructured.Unstructured, manager string, subresources []string) bool {
	if uid := desired.GetUID(); uid != "" && uid != current.GetUID() {
		return true
	}
	subresource := strings.Join(subresources, "/")
	owned, ok := ownedBy(current, desired.GetAPIVersion(), manager, subresource)
	if !ok {
		return true
	}
	fields := appliedFields(desired)
	if subresource != "" {
		maps.DeleteFunc(fields, func(k string, _ any) bool { return k != subresource })
		root := fieldpath.FieldNameElement(subresource)
		child, _ := owned.Children.Get(root)
		owned = fieldpath.NewSet()
		if child != nil {
			*owned.Children.Descend(root) = *child
		}
	}
	return !same(current.Object, fields, owned)
}

// ownedBy returns the fields that manager has applied in the given apiVersion and subresource. It
// returns false if manager has applied no such field.
func ownedBy(current *unstructured.Unstructured, apiVersion, manager, subresource string) (*fieldpath.Set, bool) {
	for _, e := range current.GetManagedFields() {
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != subresource ||
			e.APIVersion != apiVersion || e.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		return set, set.FromJSON(e.FieldsV1.GetRawReader()) == nil
	}
	return nil, false
}

// identity lists the fields of the metadata that identify the object, and those that only the
// server writes. These fields have no owner.
var identity = []string{"name", "namespace", "generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"}

// appliedFields returns the fields of obj that can have an owner.
func appliedFields(obj *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(obj.Object)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		maps.DeleteFunc(meta, func(k string, _ any) bool { return slices.Contains(identity, k) })
		fields["metadata"] = meta
		if len(meta) == 0 {
			delete(fields, "metadata")
		}
	}
	return fields
}

// same reports whether current has the values of desired, and owned has exactly the fields of
// desired.
func same(current, desired any, owned *fieldpath.Set) bool {
	var elements int
	switch desired := desired.(type) {
	case map[string]any:
		current, ok := current.(map[string]any)
		if !ok {
			return false
		}
		for name, v := range desired {
			if !sameAt(fieldpath.FieldNameElement(name), current[name], v, owned) {
				return false
			}
		}
		elements = len(desired)
	case []any:
		current, ok := current.([]any)
		if !ok {
			return false
		}
		kind, ok := anyElement(owned)
		if !ok {
			return len(desired) == 0
		}
		for _, v := range desired {
			at, ok := elementOf(v, kind)
			if !ok {
				return false
			}
			i := slices.IndexFunc(current, func(c any) bool {
				e, ok := elementOf(c, kind)
				return ok && e.Equals(at)
			})
			if i < 0 || !sameAt(at, current[i], v, owned) {
				return false
			}
		}
		elements = len(desired)
	default:
		return false // owned has elements, so the field was a map or a list
	}
	return elements == size(owned)
}

// sameAt compares one element of a map or list, as the function same does for all elements.
func sameAt(at fieldpath.PathElement, current, desired any, owned *fieldpath.Set) bool {
	if below, ok := owned.Children.Get(at); ok && !below.Empty() {
		return same(current, desired, below)
	}
	return owned.Members.Has(at) && value.Equals(value.NewValueInterface(current), value.NewValueInterface(desired))
}

// size returns the number of elements that a set names at its top level.
func size(s *fieldpath.Set) int {
	n := s.Members.Size()
	for e := range s.Children.All() {
		if below, _ := s.Children.Get(e); !s.Members.Has(e) && !below.Empty() {
			n++
		}
	}
	return n
}

func anyElement(s *fieldpath.Set) (fieldpath.PathElement, bool) {
	for e := range s.Members.All() {
		return e, true
	}
	for e := range s.Children.All() {
		return e, true
	}
	return fieldpath.PathElement{}, false
}

// elementOf returns the path element of an item of a list. It has the form of kind, the path
// element of another item: the values of the same keys, or the item's own value. elementOf returns
// false if the item has no such path element.
func elementOf(item any, kind fieldpath.PathElement) (fieldpath.PathElement, bool) {
	switch {
	case kind.Value != nil:
		return fieldpath.ValueElement(value.NewValueInterface(item)), true
	case kind.Key == nil:
		return fieldpath.PathElement{}, false
	}
	fields, ok := item.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	var key value.FieldList
	for _, k := range *kind.Key {
		v, ok := fields[k.Name]
		if !ok {
			return fieldpath.PathElement{}, false
		}
		key = append(key, value.Field{Name: k.Name, Value: value.NewValueInterface(v)})
	}
	return fieldpath.KeyElement(key...), true
}

// StatusManagers returns the managers that own, by apply or update, the field of obj's status at
// that path or a field below it. Their order is that of obj's managedFields. A manager that is
// missing has not written the field, or another client has changed the field since.
func StatusManagers(obj *unstructured.Unstructured, path ...string) []string {
	var managers []string
	entries, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, e := range list {
		entry, _ := e.(map[string]any)
		fields, ok := entry["fieldsV1"].(map[string]any)
		for _, name := range append([]string{"status"}, path...) {
			fields, ok = fields["f:"+name].(map[string]any)
			if !ok {
				break
			}
		}
		if manager, named := entry["manager"].(string); ok && named {
			managers = append(managers, manager)
		}
	}
	return managers
}

// Applied reports whether manager has applied the field of obj at that path, in any version of the
// type, and no other client has changed or removed it since. obj must contain manager's entries of
// its managedFields.
func Applied(obj metav1.Object, manager string, path ...string) bool {
	return written(obj, path, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Wrote reports the same as Applied, for writes of any kind by manager, such as a patch or an
// update.
func Wrote(obj metav1.Object, manager string, path ...string) bool {
	return written(obj, path, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

func written(obj metav1.Object, path []string, by func(metav1.ManagedFieldsEntry) bool) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		if !by(e) || e.Subresource != "" || e.FieldsV1 == nil {
			return false
		}
		owned := &fieldpath.Set{}
		return owned.FromJSON(e.FieldsV1.GetRawReader()) == nil && hasPath(owned, path)
	})
}

func hasPath(owned *fieldpath.Set, path []string) bool {
	for _, name := range path {
		at := fieldpath.FieldNameElement(name)
		if owned.Members.Has(at) {
			return true
		}
		child, found := owned.Children.Get(at)
		if !found {
			return false
		}
		owned = child
	}
	return !owned.Empty()
}
