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

// listType sets the list type: that of the schema, or if it has none, one derived from the merge key of strategic merge
// patches. List types that a CRD cannot have are left out.
func (c *converter) listType(s *spec.Schema, out *apiextensionsv1.JSONSchemaProps) {
	if out.Type != "array" || out.Items == nil || out.XListType != nil {
		return
	}
	item := out.Items.Schema
	listType, _ := s.Extensions.GetString("x-kubernetes-list-type")
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	strategy, _ := s.Extensions.GetString("x-kubernetes-patch-strategy")
	if mergeKey, _ := s.Extensions.GetString("x-kubernetes-patch-merge-key"); listType == "" && strings.Contains(strategy, "merge") {
		listType = "set"
		if mergeKey != "" {
			listType, keys = "map", []string{mergeKey}
			// Two ports may have the same number and different protocols. The merge key does not tell them apart.
			if _, ok := item.Properties["protocol"]; ok {
				keys = append(keys, "protocol")
			}
		}
	}
	switch listType {
	case "map":
		if !keyed(item, keys) {
			return
		}
		for _, k := range keys {
			if property := item.Properties[k]; !hasDefault(&property) && !slices.Contains(item.Required, k) {
				item.Required = sortedSet(append(item.Required, k))
			}
		}
		out.XListMapKeys = keys
	case "set":
		switch {
		case item.Type == "object" && (item.XMapType == nil || *item.XMapType != "atomic"), item.Type == "array" && item.XListType != nil && *item.XListType != "atomic":
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
	if err != nil || hasRules(out) || !holds(value, out) || !known(value, out) {
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
