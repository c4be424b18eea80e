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

// clauses returns the schemas of all junctors of a schema.
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

// typesOnly reports whether anyOf is the usual companion of x-kubernetes-int-or-string, which adds nothing to it.
func typesOnly(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	return len(anyOf) == 2 && canonical(anyOf[0]) == `{"type":"integer"}` && canonical(anyOf[1]) == `{"type":"string"}`
}

// junctors joins allOf, anyOf, oneOf and not: the result has the clauses of all sides.
func (n *negotiator) junctors(at place, views []view, out *apiextensionsv1.JSONSchemaProps, more *nested) {
	some, one := map[string][]apiextensionsv1.JSONSchemaProps{}, map[string][]apiextensionsv1.JSONSchemaProps{}
	not := map[string]*apiextensionsv1.JSONSchemaProps{}
	sides := make([][]string, len(views))
	plain := false
	for i, v := range views {
		own := &nested{}
		for j, clause := range v.s.AllOf {
			if v.s.XIntOrString && j == 0 && typesOnly(clause.AnyOf) {
				plain = true
				clause.AnyOf = nil
				if canonical(clause) == "{}" {
					continue
				}
			}
			more.add(clause)
			own.add(clause)
		}
		switch {
		case v.s.XIntOrString && typesOnly(v.s.AnyOf):
			plain = true
		case len(v.s.AnyOf) > 0:
			some[canonical(v.s.AnyOf)] = v.s.AnyOf
			own.add(apiextensionsv1.JSONSchemaProps{AnyOf: v.s.AnyOf})
		}
		if len(v.s.OneOf) > 0 {
			one[canonical(v.s.OneOf)] = v.s.OneOf
			own.add(apiextensionsv1.JSONSchemaProps{OneOf: v.s.OneOf})
		}
		if v.s.Not != nil {
			not[canonical(v.s.Not)] = v.s.Not
			own.add(apiextensionsv1.JSONSchemaProps{Not: v.s.Not})
		}
		sides[i] = sortedKeys(own.clauses)
	}
	for i, k := range sortedKeys(some) {
		if i == 0 {
			out.AnyOf = copyOf(some[k])
			continue
		}
		more.add(apiextensionsv1.JSONSchemaProps{AnyOf: some[k]})
	}
	if len(out.AnyOf) == 0 && plain && out.XIntOrString {
		out.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	}
	for i, k := range sortedKeys(one) {
		if i == 0 {
			out.OneOf = copyOf(one[k])
			continue
		}
		more.add(apiextensionsv1.JSONSchemaProps{OneOf: one[k]})
	}
	for i, k := range sortedKeys(not) {
		if i == 0 {
			out.Not = not[k].DeepCopy()
			continue
		}
		more.add(apiextensionsv1.JSONSchemaProps{Not: not[k]})
	}
	for _, k := range sortedKeys(more.clauses) {
		out.AllOf = append(out.AllOf, more.clauses[k])
	}
	n.clausesDiffer(at, views, sides)
}

// clausesDiffer reports clauses that not all sides have.
func (n *negotiator) clausesDiffer(at place, views []view, sides [][]string) {
	union := sortedSet(slices.Concat(sides...))
	values := make([]any, len(views))
	for i := range views {
		values[i] = sides[i]
	}
	n.report(at, "allOf", Narrows, views, values, union, "the clauses of all sides hold")
}

func copyOf(list []apiextensionsv1.JSONSchemaProps) []apiextensionsv1.JSONSchemaProps {
	out := make([]apiextensionsv1.JSONSchemaProps, len(list))
	for i := range list {
		list[i].DeepCopyInto(&out[i])
	}
	return out
}
