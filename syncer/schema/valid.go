// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// accepts reports whether a schema accepts a value, with the validator of API servers. It does not evaluate CEL rules.
func accepts(value any, s *apiextensionsv1.JSONSchemaProps) bool {
	if value == nil {
		return s.Nullable
	}
	return allValues(value, s, noListForString) && validate.NewSchemaValidator(validatable(s), nil, "", strfmt.Default).Validate(value).IsValid()
}

// validatable converts the keywords that the validator uses.
func validatable(s *apiextensionsv1.JSONSchemaProps) *spec.Schema {
	out := &spec.Schema{SchemaProps: spec.SchemaProps{
		Format: checkedFormat(s), Nullable: s.Nullable,
		Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMaximum, Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMinimum, MultipleOf: s.MultipleOf,
		MaxLength: s.MaxLength, MinLength: s.MinLength, Pattern: s.Pattern,
		MaxItems: s.MaxItems, MinItems: s.MinItems, UniqueItems: s.UniqueItems,
		MaxProperties: s.MaxProperties, MinProperties: s.MinProperties, Required: s.Required,
		AllOf: allValidatable(s.AllOf), AnyOf: allValidatable(s.AnyOf), OneOf: allValidatable(s.OneOf),
	}}
	switch {
	case s.XIntOrString:
		out.Type = spec.StringOrArray{"integer", "string"}
	case s.Type != "":
		out.Type = spec.StringOrArray{s.Type}
	}
	for _, e := range s.Enum {
		value, err := decode(e)
		if err == nil {
			out.Enum = append(out.Enum, value)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: validatable(s.Items.Schema)}
	}
	for name, property := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]spec.Schema{}
		}
		out.Properties[name] = *validatable(&property)
	}
	if rest := s.AdditionalProperties; rest != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: rest.Allows || rest.Schema != nil}
		if rest.Schema != nil {
			out.AdditionalProperties.Schema = validatable(rest.Schema)
		}
	}
	if s.Not != nil {
		out.Not = validatable(s.Not)
	}
	return out
}

func allValidatable(list []apiextensionsv1.JSONSchemaProps) (out []spec.Schema) {
	for i := range list {
		out = append(out, *validatable(&list[i]))
	}
	return out
}

// checkedFormat returns the format of a schema. It returns "" for a format of numbers, and for int-or-string, if the
// type is not a number, since API servers then ignore the format.
func checkedFormat(s *apiextensionsv1.JSONSchemaProps) string {
	number := s.Type == "integer" || s.Type == "number"
	if !number && (s.Format == intOrString || slices.Contains(numberFormats, s.Format)) {
		return ""
	}
	return s.Format
}

// known reports whether an API server's pruning keeps all fields of a value.
func known(value any, s *apiextensionsv1.JSONSchemaProps) bool { return keeps(value, s, false) }

func keeps(value any, s *apiextensionsv1.JSONSchemaProps, inherited bool) bool {
	if s == nil {
		object, ok := value.(map[string]any)
		return !ok || len(object) == 0
	}
	preserve := preserves(s) || inherited
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if !keepsField(name, v, s, preserve) {
				return false
			}
		}
	case []any:
		var items *apiextensionsv1.JSONSchemaProps
		if s.Items != nil {
			items = s.Items.Schema
		}
		if items == nil && preserve {
			return true
		}
		return !slices.ContainsFunc(value, func(v any) bool { return !keeps(v, items, preserve) })
	}
	return true
}

func keepsField(name string, value any, s *apiextensionsv1.JSONSchemaProps, preserve bool) bool {
	property, declared := s.Properties[name]
	switch {
	case declared:
		return keeps(value, &property, false)
	case s.AdditionalProperties != nil:
		return keeps(value, s.AdditionalProperties.Schema, false)
	}
	return preserve
}

// allValues passes value, and each declared value in it, to its function parameter. It reports whether all calls
// returned true.
func allValues(value any, s *apiextensionsv1.JSONSchemaProps, is func(any, *apiextensionsv1.JSONSchemaProps) bool) bool {
	if s == nil {
		return true
	}
	if !is(value, s) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			if property, ok := s.Properties[name]; ok {
				if !allValues(v, &property, is) {
					return false
				}
			} else if s.AdditionalProperties != nil && !allValues(v, s.AdditionalProperties.Schema, is) {
				return false
			}
		}
	case []any:
		if s.Items == nil {
			return true
		}
		return !slices.ContainsFunc(value, func(v any) bool { return !allValues(v, s.Items.Schema, is) })
	}
	return true
}

// noListForString returns false for a list in place of a string: API servers do not check the type where a string has a
// format and the value is a list.
func noListForString(value any, s *apiextensionsv1.JSONSchemaProps) bool {
	_, list := value.([]any)
	return !list || s.Type != "string"
}

// unique returns false for a set with equal items and for a list with equal keys. API servers do not check this for
// defaults in a CRD, and later reject the objects that they fill in.
func unique(value any, s *apiextensionsv1.JSONSchemaProps) bool {
	list, _ := value.([]any)
	found := map[string]bool{}
	for _, v := range list {
		k := identity(v, s)
		if k != "" && found[k] {
			return false
		}
		found[k] = true
	}
	return true
}

// identity returns the text that must be unique in a list, or "" if the list may have equal items.
func identity(item any, list *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case list.XListType == nil:
		return ""
	case *list.XListType == "set":
		return canonical(item)
	case *list.XListType == "map":
		object, _ := item.(map[string]any)
		keys := make([]any, len(list.XListMapKeys))
		for i, k := range list.XListMapKeys {
			keys[i] = object[k]
		}
		return canonical(keys)
	}
	return ""
}

// consistent reports whether a field's default is accepted after the defaults below it are filled in. API servers do
// not check this when a CRD is created. If the field has rules, the defaults below must not change its default.
func consistent(s *apiextensionsv1.JSONSchemaProps) bool {
	value, err := decode(*s.Default)
	if err != nil {
		return false
	}
	filled := runtime.DeepCopyJSONValue(value)
	fill(filled, s)
	return accepts(filled, s) && allValues(filled, s, unique) && (!hasRules(s) || reflect.DeepEqual(value, filled))
}

// fill fills in defaults as API servers do.
func fill(value any, s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if v, ok := value[name]; hasDefault(&property) && (!ok || v == nil && !property.Nullable) {
				if d, err := decode(*property.Default); err == nil {
					value[name] = d
				}
			}
		}
		for name, v := range value {
			if property, ok := s.Properties[name]; ok {
				fill(v, &property)
			} else if s.AdditionalProperties != nil {
				fill(v, s.AdditionalProperties.Schema)
			}
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, v := range value {
			fill(v, s.Items.Schema)
		}
	}
}
