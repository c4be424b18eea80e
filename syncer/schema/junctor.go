// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// nested are clauses that the result needs in allOf, because its own keywords can hold only one value.
type nested struct {
	clauses map[string]apiextensionsv1.JSONSchemaProps
}

func (n *nested) add(clause apiextensionsv1.JSONSchemaProps) {
	if n.clauses == nil {
		n.clauses = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	n.clauses[canonical(clause)] = *clause.DeepCopy()
}

func addTo(clause apiextensionsv1.JSONSchemaProps, lists ...*nested) {
	for _, n := range lists {
		n.add(clause)
	}
}

// first returns the first clause by its text, for the result's own keyword, and adds the other clauses to more. It
// returns an empty schema if there is no clause.
func (n *nested) first(more *nested) (out apiextensionsv1.JSONSchemaProps) {
	for i, k := range sortedKeys(n.clauses) {
		if i == 0 {
			out = n.clauses[k]
			continue
		}
		more.add(n.clauses[k])
	}
	return out
}

// clauses returns the schemas in allOf, anyOf, oneOf and not of a schema.
func clauses(s *apiextensionsv1.JSONSchemaProps) []*apiextensionsv1.JSONSchemaProps {
	var out []*apiextensionsv1.JSONSchemaProps
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	if s.Not != nil {
		out = append(out, s.Not)
	}
	return out
}

// typesOnly reports whether anyOf is the usual companion of x-kubernetes-int-or-string, which restricts nothing
// further.
func typesOnly(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	return len(anyOf) == 2 && canonical(anyOf[0]) == `{"type":"integer"}` && canonical(anyOf[1]) == `{"type":"string"}`
}

// explicit returns the clauses of allOf and anyOf without those that only accompany x-kubernetes-int-or-string.
// accompanied reports whether there were such clauses.
func explicit(s *apiextensionsv1.JSONSchemaProps) (allOf, anyOf []apiextensionsv1.JSONSchemaProps, accompanied bool) {
	for i, clause := range s.AllOf {
		if s.XIntOrString && i == 0 && typesOnly(clause.AnyOf) {
			accompanied = true
			clause.AnyOf = nil
			if canonical(clause) == "{}" {
				continue
			}
		}
		allOf = append(allOf, clause)
	}
	if s.XIntOrString && typesOnly(s.AnyOf) {
		return allOf, nil, true
	}
	return allOf, s.AnyOf, accompanied
}

// junctors joins allOf, anyOf, oneOf and not: the result has the clauses of all sides.
func (n *negotiator) junctors(at position, views []view, out *apiextensionsv1.JSONSchemaProps, more *nested) {
	var some, one, not nested
	sides := make([][]string, len(views))
	plain := false
	for i, v := range views {
		allOf, anyOf, accompanied := explicit(v.s)
		plain = plain || accompanied
		var own nested
		for _, clause := range allOf {
			addTo(clause, more, &own)
		}
		if len(anyOf) > 0 {
			addTo(apiextensionsv1.JSONSchemaProps{AnyOf: anyOf}, &some, &own)
		}
		if len(v.s.OneOf) > 0 {
			addTo(apiextensionsv1.JSONSchemaProps{OneOf: v.s.OneOf}, &one, &own)
		}
		if v.s.Not != nil {
			addTo(apiextensionsv1.JSONSchemaProps{Not: v.s.Not}, &not, &own)
		}
		sides[i] = sortedKeys(own.clauses)
	}
	out.AnyOf = some.first(more).AnyOf
	if len(out.AnyOf) == 0 && plain && out.XIntOrString {
		out.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	}
	out.OneOf = one.first(more).OneOf
	out.Not = not.first(more).Not
	for _, k := range sortedKeys(more.clauses) {
		out.AllOf = append(out.AllOf, more.clauses[k])
	}
	n.clausesDiffer(at, views, sides)
}

// clausesDiffer reports clauses that not all sides have.
func (n *negotiator) clausesDiffer(at position, views []view, sides [][]string) {
	union := sortedSet(slices.Concat(sides...))
	values := make([]any, len(views))
	for i := range views {
		values[i] = sides[i]
	}
	n.report(at, "allOf", Narrows, views, values, union, "the clauses of all sides hold")
}
