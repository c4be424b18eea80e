// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// listType sets the list type that the document gives. List types that a CRD cannot have are left out.
func (c *converter) listType(s *spec.Schema, out *apiextensionsv1.JSONSchemaProps) {
	if out.Type != "array" || out.Items == nil || out.XListType != nil {
		return
	}
	item := out.Items.Schema
	listType, keys := documented(s, item)
	switch listType {
	case "map":
		if !keyed(item, keys) {
			return
		}
		for _, k := range keys {
			if property := item.Properties[k]; !hasDefault(&property) {
				demand(item, k)
			}
		}
		out.XListMapKeys = keys
	case "set":
		if !atomic(item) {
			return
		}
	case "atomic":
	default:
		return
	}
	if listType != "atomic" {
		item.Nullable = false
	}
	out.XListType = &listType
}

// documented returns the list type and the keys of a schema. If the schema has no list type, documented returns those
// that follow from the merge key of strategic merge patches.
func documented(s *spec.Schema, item *apiextensionsv1.JSONSchemaProps) (listType string, keys []string) {
	listType, _ = s.Extensions.GetString("x-kubernetes-list-type")
	keys, _ = s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	strategy, _ := s.Extensions.GetString("x-kubernetes-patch-strategy")
	if listType != "" || !strings.Contains(strategy, "merge") {
		return listType, keys
	}
	mergeKey, _ := s.Extensions.GetString("x-kubernetes-patch-merge-key")
	if mergeKey == "" {
		return "set", keys
	}
	// Two ports may have the same number and different protocols, so the merge key alone does not identify a port.
	if _, ok := item.Properties["protocol"]; ok {
		return "map", []string{mergeKey, "protocol"}
	}
	return "map", []string{mergeKey}
}

// keyed reports whether the keys can identify items.
func keyed(item *apiextensionsv1.JSONSchemaProps, keys []string) bool {
	if item.Type != "object" || len(keys) == 0 {
		return false
	}
	return !slices.ContainsFunc(keys, func(k string) bool {
		property, ok := item.Properties[k]
		return !ok || property.Type == "object" || property.Type == "array" || property.Nullable
	}) && len(sortedSet(keys)) == len(keys)
}

// setDefault sets a default that the schema accepts and that is not the zero value of a Go type.
func (c *converter) setDefault(s *spec.Schema, out *apiextensionsv1.JSONSchemaProps) {
	if s.Default == nil || zero(s.Default) {
		return
	}
	text, err := json.Marshal(s.Default)
	if err != nil {
		return
	}
	value, err := decode(apiextensionsv1.JSON{Raw: text})
	if err != nil || hasRules(out) || !accepts(value, out) || !known(value, out) {
		return
	}
	out.Default = &apiextensionsv1.JSON{Raw: text}
}

func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case float64:
		return v == 0
	case int64:
		return v == 0
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
