// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// negotiator merges the schemas of the sides, and collects the differences between them.
type negotiator struct {
	names       []string
	differences []Difference
}

// position is a place in the schemas of all sides, with the properties of the place that do not depend on a side.
type position struct {
	path     string
	root     bool
	resource bool // the root or an embedded resource: apiVersion, kind and metadata always exist
	meta     bool // within apiVersion, kind or metadata: undeclared fields are kept
}

// view is the schema of one side for a place. A side without a view accepts and keeps any value there.
type view struct {
	side     int
	s        *apiextensionsv1.JSONSchemaProps
	preserve bool // keeps undeclared fields
	scalars  bool // keeps only scalars and lists of scalars, as with additionalProperties: true
	refers   *references
}

func root(side int, s *apiextensionsv1.JSONSchemaProps) view {
	return view{side: side, s: s, preserve: preserves(s), refers: refer(nil, s)}
}

// child returns the view of a schema below v.
func (v view) child(s *apiextensionsv1.JSONSchemaProps) view {
	return view{side: v.side, s: s, preserve: preserves(s), refers: refer(v.refers, s)}
}

// anyScalar returns the view of an undeclared field of which the side keeps only scalars.
func (v view) anyScalar() view {
	return view{side: v.side, s: &apiextensionsv1.JSONSchemaProps{}, scalars: true, refers: v.refers}
}

// same reports whether two sides treat the place alike, and keep objects there too.
func (v view) same(o view) bool {
	return !v.scalars && !o.scalars && v.preserve == o.preserve && (v.s == o.s || equality.Semantic.DeepEqual(o.s, v.s))
}

func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// kindOf returns the type, "int-or-string" for integers or strings, and "" for any type.
func kindOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.XIntOrString {
		return intOrString
	}
	return s.Type
}

const intOrString = "int-or-string"

// commonKind returns the type of the values that both types include. It returns false if no value has both types.
func commonKind(a, b string) (string, bool) {
	if a > b {
		a, b = b, a
	}
	switch {
	case a == b, a == "":
		return b, true
	case a == "int-or-string" && b == "integer", a == "int-or-string" && b == "number", a == "integer" && b == "number":
		return "integer", true
	case a == "int-or-string" && b == "string":
		return "string", true
	}
	return "", false
}

// kindOfAll returns the type of the values that the types of all views include. It returns false if no value has all
// these types.
func kindOfAll(views []view) (kind string, ok bool) {
	kind = kindOf(views[0].s)
	for _, v := range views[1:] {
		if kind, ok = commonKind(kind, kindOf(v.s)); !ok {
			return "", false
		}
	}
	return kind, true
}

// meet returns a schema whose objects all views accept. It needs at least one view, and returns false if no value is
// accepted by all.
func (n *negotiator) meet(at position, views []view) (*apiextensionsv1.JSONSchemaProps, bool) {
	first := views[0]
	if all(views, first.same) {
		out := first.s.DeepCopy()
		if first.preserve && (out.Type == "object" || out.Type == "array") {
			out.XPreserveUnknownFields = new(true)
		}
		return out, true
	}

	kind, ok := kindOfAll(views)
	if !ok {
		n.conflict(at, "type", views, func(s *apiextensionsv1.JSONSchemaProps) any { return kindOf(s) }, "")
		return nil, false
	}
	out := &apiextensionsv1.JSONSchemaProps{Type: kind}
	if kind == intOrString {
		out.Type, out.XIntOrString = "", true
	}
	compare(n, at, "type", Narrows, views, kindOf, kind)
	n.documentation(at, views, out)
	out.Nullable = compare(n, at, "nullable", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) bool { return s.Nullable }, all(views, func(v view) bool { return v.s.Nullable }))
	out.Default = compare(n, at, "default", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSON { return s.Default }, commonDefault(views))

	nested := &nested{}
	ok = n.numbers(at, views, out, kind, nested) &&
		n.strings(at, views, out, kind, nested) &&
		n.array(at, views, out, kind) &&
		n.object(at, views, out, kind)
	if !ok {
		return nil, false
	}
	n.junctors(at, views, out, nested)
	if !n.enum(at, views, out) || !n.rules(at, views, out) {
		return nil, false
	}
	if anyOf(views, func(v view) bool { return v.scalars }) && !scalar(out) {
		n.conflict(at, "additionalProperties", views, func(s *apiextensionsv1.JSONSchemaProps) any { return kindOf(s) }, "additionalProperties: true keeps scalars only")
		return nil, false
	}
	return out, true
}

// documentation keeps the first text of each kind that a side has.
func (n *negotiator) documentation(at position, views []view, out *apiextensionsv1.JSONSchemaProps) {
	for _, v := range views {
		if out.Description == "" {
			out.Description = v.s.Description
		}
		if out.Title == "" {
			out.Title = v.s.Title
		}
		if out.ExternalDocs == nil {
			out.ExternalDocs = v.s.ExternalDocs.DeepCopy()
		}
		if out.Example == nil {
			out.Example = v.s.Example.DeepCopy()
		}
	}
	compare(n, at, "description", Cosmetic, views, func(s *apiextensionsv1.JSONSchemaProps) string { return s.Description }, out.Description)
	compare(n, at, "title", Cosmetic, views, func(s *apiextensionsv1.JSONSchemaProps) string { return s.Title }, out.Title)
	compare(n, at, "example", Cosmetic, views, func(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSON { return s.Example }, out.Example)
	compare(n, at, "externalDocs", Cosmetic, views, func(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.ExternalDocumentation { return s.ExternalDocs }, out.ExternalDocs)
}

// scalar reports whether the values that a schema accepts contain no objects.
func scalar(s *apiextensionsv1.JSONSchemaProps) bool {
	switch kindOf(s) {
	case "object", "":
		return false
	case "array":
		return s.Items != nil && s.Items.Schema != nil && scalar(s.Items.Schema)
	}
	return true
}

func all(views []view, is func(view) bool) bool {
	return !slices.ContainsFunc(views, func(v view) bool { return !is(v) })
}

func anyOf(views []view, is func(view) bool) bool { return slices.ContainsFunc(views, is) }

// refused returns a schema that accepts no value. It declares the fields of one of the views, since rules may refer to
// them. The choice does not depend on the order of the sides.
func refused(views []view) *apiextensionsv1.JSONSchemaProps {
	var out *apiextensionsv1.JSONSchemaProps
	for _, v := range views {
		if v.scalars {
			continue
		}
		if b := bare(v.s.DeepCopy()); out == nil || canonical(b) < canonical(out) {
			out = b
		}
	}
	if out == nil {
		out = &apiextensionsv1.JSONSchemaProps{Type: "boolean"}
	}
	out.Nullable = false
	out.Not = &apiextensionsv1.JSONSchemaProps{}
	return out
}

// refusesAll reports whether a schema accepts no value, like those that refused returns.
func refusesAll(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Not != nil && canonical(s.Not) == "{}"
}

// bare removes the parts of a schema that would have to be consistent with other parts of it.
func bare(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	s.Description, s.Default, s.XValidations, s.XListType, s.XListMapKeys = "", nil, nil, nil, nil
	for name, property := range s.Properties {
		s.Properties[name] = *bare(&property)
	}
	if s.Items != nil && s.Items.Schema != nil {
		bare(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		bare(s.AdditionalProperties.Schema)
	}
	return s
}
