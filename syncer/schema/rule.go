// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// rules joins the CEL rules of all sides. A rule keeps its meaning only if each part of the object that it may refer
// to has the same type in the result. If a rule cannot keep its meaning, no object is accepted here, and rules returns
// false.
func (n *negotiator) rules(at position, views []view, out *apiextensionsv1.JSONSchemaProps) bool {
	found := map[string]apiextensionsv1.ValidationRule{}
	sides := make([]any, len(views))
	for i, v := range views {
		own := map[string]bool{}
		for _, rule := range v.s.XValidations {
			k := rule.Rule
			if rule.OptionalOldSelf != nil && *rule.OptionalOldSelf {
				k += " (optionalOldSelf)"
			}
			own[k] = true
			if other, ok := found[k]; !ok || canonical(rule) < canonical(other) {
				found[k] = rule
			}
		}
		sides[i] = sortedKeys(own)
		if len(own) == 0 {
			continue
		}
		r := refer(nil, &apiextensionsv1.JSONSchemaProps{XValidations: v.s.XValidations})
		if where, ok := sameShape(at.path, v.s, out, r); !ok {
			n.conflict(at, "x-kubernetes-validations", views, func(s *apiextensionsv1.JSONSchemaProps) any { return texts(s.XValidations) },
				n.names[v.side]+" has rules that cannot be carried over: "+describe(where)+" has another type in the result or is absent there")
			return false
		}
	}
	var union []string
	for _, k := range sortedKeys(found) {
		rule := found[k]
		if rule.FieldPath != "" && !hasPath(out, rule.FieldPath) {
			rule.FieldPath = ""
		}
		out.XValidations = append(out.XValidations, rule)
		union = append(union, k)
	}
	n.report(at, "x-kubernetes-validations", Narrows, views, sides, union, "the rules of all sides hold")
	return true
}

func texts(rules apiextensionsv1.ValidationRules) []string {
	var out []string
	for _, r := range rules {
		out = append(out, r.Rule)
	}
	return out
}

// hasRules reports whether a schema or a part of it has CEL rules.
func hasRules(s *apiextensionsv1.JSONSchemaProps) bool {
	if len(s.XValidations) > 0 {
		return true
	}
	for _, property := range s.Properties {
		if hasRules(&property) {
			return true
		}
	}
	return s.Items != nil && s.Items.Schema != nil && hasRules(s.Items.Schema) ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && hasRules(s.AdditionalProperties.Schema)
}

// sameShape reports whether two schemas have the same types for CEL at each place to which r may refer. If not, it
// returns the path of a place where the types differ.
func sameShape(path string, a, b *apiextensionsv1.JSONSchemaProps, r *references) (string, bool) {
	if shape(a) != shape(b) {
		return path, false
	}
	for _, name := range slices.Sorted(maps.Keys(a.Properties)) {
		if !r.mayName(name) {
			continue
		}
		property := a.Properties[name]
		other, ok := b.Properties[name]
		if !ok {
			return join(path, name), false
		}
		if where, same := sameShape(join(path, name), &property, &other, r); !same {
			return where, false
		}
	}
	if a.Items != nil && a.Items.Schema != nil && b.Items != nil && b.Items.Schema != nil {
		if where, same := sameShape(path+"[*]", a.Items.Schema, b.Items.Schema, r); !same {
			return where, false
		}
	}
	if a.AdditionalProperties != nil && a.AdditionalProperties.Schema != nil && b.AdditionalProperties != nil && b.AdditionalProperties.Schema != nil {
		return sameShape(join(path, "*"), a.AdditionalProperties.Schema, b.AdditionalProperties.Schema, r)
	}
	return "", true
}

// shape returns a name that differs for types that CEL distinguishes.
func shape(s *apiextensionsv1.JSONSchemaProps) string {
	switch kind := kindOf(s); kind {
	case "object":
		switch {
		case len(s.Properties) > 0 || s.XEmbeddedResource:
			return "fields"
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			return "map"
		}
		return "opaque"
	case "string":
		switch f := strings.ReplaceAll(s.Format, "-", ""); f {
		case "byte", "date", "datetime", "duration":
			return f
		}
		return kind
	case "array":
		if s.XListType != nil && *s.XListType != "atomic" {
			return "array " + *s.XListType + strings.Join(sortedSet(s.XListMapKeys), ",")
		}
		return "array"
	default:
		return cmp.Or(kind, "any")
	}
}

// hasPath reports whether a schema has the field that a rule's fieldPath names. It knows only paths with dots.
func hasPath(s *apiextensionsv1.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		property, ok := s.Properties[name]
		if !ok {
			return false
		}
		s = &property
	}
	return true
}
