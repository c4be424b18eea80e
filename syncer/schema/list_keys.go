// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// listKeys are the rules by which the items of a list must differ from each other.
type listKeys struct {
	listType string   // map, set, or "" if equal items are allowed
	keys     []string // of a map
	single   bool     // the list has at most one item
}

// listTypeOf returns the list type; "" for lists that may have equal items.
func listTypeOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.XListType == nil || *s.XListType == "atomic" {
		return ""
	}
	return *s.XListType
}

// join adds the rules of one side.
func (l *listKeys) join(s *apiextensionsv1.JSONSchemaProps) {
	switch listTypeOf(s) {
	case "map":
		l.joinKeys(sortedSet(s.XListMapKeys))
	case "set":
		l.listType = cmp.Or(l.listType, "set")
	}
}

func (l *listKeys) joinKeys(keys []string) {
	if l.listType != "map" {
		l.listType, l.keys = "map", keys
		return
	}
	both := slices.DeleteFunc(slices.Clone(l.keys), func(k string) bool { return !slices.Contains(keys, k) })
	if len(both) == 0 {
		// A list of at most one item may have either key: choose the first in order, independent of the order of the
		// sides.
		l.single = true
		both = slices.MinFunc([][]string{l.keys, keys}, slices.Compare)
	}
	l.keys = both
}

// fit adapts the rules to the schema of the items. If that schema cannot meet the rules, the list may have at most one
// item. Keys without a default become required in the schema.
func (l *listKeys) fit(item *apiextensionsv1.JSONSchemaProps) {
	if refusesAll(item) {
		l.listType, l.keys = "", nil // the list is empty, and its item schema is from one side only
		return
	}
	switch l.listType {
	case "map":
		for _, k := range l.keys {
			property, declared := item.Properties[k]
			if !declared || property.Not != nil || item.Type != "object" {
				*l = listKeys{single: true}
				return
			}
			if property.Default == nil {
				demand(item, k)
			}
		}
	case "set":
		if item.Type == "object" {
			item.XMapType = new("atomic")
		}
		if !atomic(item) {
			*l = listKeys{single: true}
		}
	}
}

// demand makes a field required.
func demand(s *apiextensionsv1.JSONSchemaProps, name string) {
	if !slices.Contains(s.Required, name) {
		s.Required = sortedSet(append(s.Required, name))
	}
}

// atomic reports whether server-side apply replaces values of the schema as a whole, as it must with the items of a
// set.
func atomic(s *apiextensionsv1.JSONSchemaProps) bool {
	switch s.Type {
	case "object":
		return s.XMapType != nil && *s.XMapType == "atomic"
	case "array":
		return s.XListType == nil || *s.XListType == "atomic"
	}
	return true
}
