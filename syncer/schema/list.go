// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// array merges the keywords of lists. It returns false if no length of a list is possible.
func (n *negotiator) array(at position, views []view, out *apiextensionsv1.JSONSchemaProps, kind string) bool {
	out.MinItems = compare(n, at, "minItems", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinItems }, greatest(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinItems }))
	out.MaxItems = least(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxItems })
	out.UniqueItems = compare(n, at, "uniqueItems", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) bool { return s.UniqueItems }, anyOf(views, func(v view) bool { return v.s.UniqueItems }))
	if kind == "array" || kind == "" {
		n.items(at, views, out)
	}
	if kind == "array" {
		n.listType(at, views, out)
	}
	compare(n, at, "maxItems", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxItems }, out.MaxItems)
	if kind == "array" && over(out.MinItems, out.MaxItems) {
		n.conflict(at, "maxItems", views, func(s *apiextensionsv1.JSONSchemaProps) any { return []*int64{s.MinItems, s.MaxItems} }, "no length is in all of the ranges")
		return false
	}
	return true
}

// items merges the schemas of items. If no item is accepted by all sides, the list must be empty.
func (n *negotiator) items(at position, views []view, out *apiextensionsv1.JSONSchemaProps) {
	var below []view
	for _, v := range views {
		if v.s.Items == nil || v.s.Items.Schema == nil {
			continue
		}
		child := v.child(v.s.Items.Schema)
		child.preserve = child.preserve || v.preserve
		child.scalars = v.scalars
		below = append(below, child)
	}
	if len(below) == 0 {
		return
	}
	items, ok := n.meet(position{path: at.path + "[*]"}, below)
	if !ok {
		items = refused(below)
		out.MaxItems = new(int64(0))
	}
	out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}
}

// listType merges list types. Lists with unique keys also have unique items. If the keys differ, items must be unique
// by the keys that all sides share; without a shared key, the list has at most one item.
func (n *negotiator) listType(at position, views []view, out *apiextensionsv1.JSONSchemaProps) {
	var found listKeys
	for _, v := range views {
		found.join(v.s)
	}
	found.fit(out.Items.Schema)
	if found.single && (out.MaxItems == nil || *out.MaxItems > 1) {
		out.MaxItems = new(int64(1))
	}
	switch {
	case found.listType != "":
		out.XListType, out.XListMapKeys = new(found.listType), found.keys
		out.Items.Schema.Nullable = false
	case all(views, func(v view) bool { return v.s.XListType != nil }):
		out.XListType = new("atomic")
	}
	compare(n, at, "x-kubernetes-list-type", Narrows, views, listTypeOf, found.listType)
	keys := func(s *apiextensionsv1.JSONSchemaProps) []string { return sortedSet(s.XListMapKeys) }
	compare(n, at, "x-kubernetes-list-map-keys", Narrows, views, keys, found.keys)
}
