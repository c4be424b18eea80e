// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// isMeta reports whether a field of a resource always exists, even if its schema does not declare it.
func isMeta(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" }

// keeps reports whether a field below at is kept although a schema does not declare it, as in metadata.
func (at position) keeps(name string) bool { return at.meta || at.resource && isMeta(name) }

// field has the schemas of all sides for one field of an object.
type field struct {
	views     []view // of the sides that declare the field
	absent    bool   // some side does not have the field, and drops it
	demanded  bool   // some side requires it and has no default
	required  bool   // some side requires it
	defaults  map[string]apiextensionsv1.JSON
	defaulted map[int]bool // the sides that have a default
}

// object merges the keywords of objects. It returns false if no object is possible.
func (n *negotiator) object(at position, views []view, out *apiextensionsv1.JSONSchemaProps, kind string) bool {
	out.MinProperties = compare(n, at, "minProperties", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinProperties }, greatest(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinProperties }))
	if kind != "object" && kind != "" {
		if all(views, preserving) && kind == "array" {
			out.XPreserveUnknownFields = new(true)
		}
		out.MaxProperties = least(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxProperties })
		return true
	}
	if !n.embedded(&at, views, out) {
		return false
	}
	at.resource = at.resource || out.XEmbeddedResource
	n.mapType(at, views, out)

	fields := n.fields(at, views)
	rest := restOf(at, views)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !n.property(at, views, out, name, fields[name], rest) {
			return false
		}
	}
	if !n.mergeUndeclared(at, views, out, rest) {
		return false
	}
	out.Required = sortedSet(out.Required)
	n.report(at, "required", Narrows, views, each(views, func(s *apiextensionsv1.JSONSchemaProps) any { return sortedSet(s.Required) }), out.Required, "")
	if out.XEmbeddedResource && !preserves(out) && len(out.Properties) == 0 {
		out.Properties = map[string]apiextensionsv1.JSONSchemaProps{"apiVersion": {Type: "string"}, "kind": {Type: "string"}, "metadata": {Type: "object"}}
	}
	return n.counts(at, views, out, kind)
}

func preserving(v view) bool { return v.preserve }

// embedded merges x-kubernetes-embedded-resource. If a side has it, every side must keep apiVersion, kind and metadata.
func (n *negotiator) embedded(at *position, views []view, out *apiextensionsv1.JSONSchemaProps) bool {
	embeds := func(s *apiextensionsv1.JSONSchemaProps) bool { return s.XEmbeddedResource }
	if !anyOf(views, func(v view) bool { return embeds(v.s) }) {
		return true
	}
	keeps := func(v view) bool {
		declared := slices.ContainsFunc([]string{"apiVersion", "kind", "metadata"}, func(name string) bool {
			_, ok := v.s.Properties[name]
			return ok
		})
		return embeds(v.s) || v.preserve && !declared && v.s.AdditionalProperties == nil
	}
	if !all(views, keeps) {
		n.conflict(*at, "x-kubernetes-embedded-resource", views, func(s *apiextensionsv1.JSONSchemaProps) any { return embeds(s) }, "some side does not keep apiVersion, kind and metadata")
		return false
	}
	out.XEmbeddedResource = compare(n, *at, "x-kubernetes-embedded-resource", Narrows, views, embeds, true)
	out.Type = "object"
	return true
}

// mapType merges the map type, which server-side apply uses. The map type does not change which objects are accepted.
func (n *negotiator) mapType(at position, views []view, out *apiextensionsv1.JSONSchemaProps) {
	mapType := func(s *apiextensionsv1.JSONSchemaProps) string {
		if s.XMapType == nil {
			return ""
		}
		return *s.XMapType
	}
	first := mapType(views[0].s)
	if first != "" && all(views, func(v view) bool { return mapType(v.s) == first }) {
		out.XMapType = &first
	}
	result := ""
	if out.XMapType != nil {
		result = first
	}
	compare(n, at, "x-kubernetes-map-type", Cosmetic, views, mapType, result)
}

// fields collects the schemas of each field that some side declares or requires.
func (n *negotiator) fields(at position, views []view) map[string]*field {
	out := map[string]*field{}
	for _, v := range views {
		for _, name := range slices.Concat(slices.Collect(maps.Keys(v.s.Properties)), v.s.Required) {
			if out[name] == nil {
				out[name] = n.field(at, views, name)
			}
		}
	}
	return out
}

func (n *negotiator) field(at position, views []view, name string) *field {
	f := &field{defaults: map[string]apiextensionsv1.JSON{}, defaulted: map[int]bool{}}
	for _, v := range views {
		property, declared := v.s.Properties[name]
		switch rest := restOne(v); {
		case declared:
			f.views = append(f.views, v.child(&property))
		case rest == restSchema:
			f.views = append(f.views, v.child(v.s.AdditionalProperties.Schema))
		case rest == restRefused, rest == restDropped && !at.keeps(name):
			f.absent = true
		case rest == restScalars && !at.keeps(name):
			f.views = append(f.views, v.anyScalar())
		}
		requires := slices.Contains(v.s.Required, name)
		f.required = f.required || requires
		if declared && hasDefault(&property) {
			f.defaults[key(*property.Default)] = *property.Default
			f.defaulted[v.side] = true
			continue
		}
		f.demanded = f.demanded || requires
	}
	return f
}

// property merges one field into out. It returns false if the field is required and cannot be set.
func (n *negotiator) property(at position, views []view, out *apiextensionsv1.JSONSchemaProps, name string, f *field, rest remainder) bool {
	below := position{path: join(at.path, name), meta: at.keeps(name)}
	if len(f.views) == 0 && !f.absent {
		// No side declares the field and all keep it, but some side requires it.
		out.Required = append(out.Required, name)
		return true
	}
	var merged *apiextensionsv1.JSONSchemaProps
	ok := !f.absent
	switch {
	case !ok:
		n.missing(below, views, name)
	case anyOf(f.views, func(v view) bool { return refusesAll(v.s) }):
		ok = false
		n.conflict(below, "not", f.views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.Not }, "a side has this field and refuses every value")
	default:
		merged, ok = n.meet(below, f.views)
	}
	if !ok {
		return n.dropped(at, views, out, name, f, rest)
	}
	n.undeclared(below, views, f)
	merged.Default = nil
	shared, demanded := f.sharedDefault(merged)
	merged.Default = shared
	n.defaults(below, f, merged.Default)
	if demanded || f.required {
		out.Required = append(out.Required, name)
	}
	set(out, name, merged)
	return true
}

// sharedDefault returns the default of a merged field, nil if it has no default, and whether objects must set the
// field. They must set it in these cases: a side without a default requires the field; the sides have different
// defaults; a side without the default may have rules about the field; or the merged schema does not accept the
// default.
func (f *field) sharedDefault(merged *apiextensionsv1.JSONSchemaProps) (shared *apiextensionsv1.JSON, _ bool) {
	demanded := f.demanded || len(f.defaults) > 1
	if demanded {
		return nil, true
	}
	foreign := hasRules(merged) && len(f.defaulted) < len(f.views) // a side without the default has rules
	for _, d := range f.defaults {
		value, err := decode(d)
		if err != nil || foreign || !accepts(value, merged) || !known(value, merged) {
			return nil, true
		}
		shared = d.DeepCopy()
	}
	return shared, false
}

// missing reports a field that some side does not have.
func (n *negotiator) missing(at position, views []view, name string) {
	values := make([]any, len(views))
	for i, v := range views {
		if property, ok := v.s.Properties[name]; ok {
			values[i] = cmp.Or(kindOf(&property), "any")
		}
	}
	n.report(at, "properties", Narrows, views, values, nil, "not every side has this field")
}

// undeclared reports a field that some sides declare and others accept with any value.
func (n *negotiator) undeclared(at position, views []view, f *field) {
	if len(f.views) == len(views) || at.meta {
		return
	}
	list := make([]Value, len(n.names))
	for i, name := range n.names {
		list[i] = Value{Side: name}
	}
	for _, v := range views {
		list[v.side].Narrowed = true
	}
	for _, v := range f.views {
		list[v.side] = Value{Side: n.names[v.side], Value: cmp.Or(kindOf(v.s), "any")}
	}
	n.differences = append(n.differences, Difference{Path: at.path, Keyword: "properties", Effect: Narrows, Values: list, Reason: "some sides keep any value here"})
}

// defaults reports the defaults that differ from the default in the result.
func (n *negotiator) defaults(at position, f *field, result *apiextensionsv1.JSON) {
	n.differences = slices.DeleteFunc(n.differences, func(d Difference) bool { return d.Path == at.path && d.Keyword == "default" })
	reason := ""
	if result == nil {
		reason = "the field is required, since the sides have no common default"
	}
	effect := Narrows
	if result != nil {
		effect = Cosmetic
	}
	n.report(at, "default", effect, f.views, each(f.views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.Default }), result, reason)
}

// dropped removes a field that some side does not have, or for which no value is accepted by all sides. It returns
// false if an object without the field is impossible, or if a side with a default for the field could then reject the
// object.
func (n *negotiator) dropped(at position, views []view, out *apiextensionsv1.JSONSchemaProps, name string, f *field, rest remainder) bool {
	if f.demanded {
		n.conflict(at, "required", views, func(s *apiextensionsv1.JSONSchemaProps) any { return sortedSet(s.Required) }, fmt.Sprintf("%s is required and cannot be set", name))
		return false
	}
	var kept []view
	for _, v := range views {
		property, ok := v.s.Properties[name]
		if ok && f.defaulted[v.side] && !consistent(&property) {
			n.conflict(at, "default", views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.Properties[name].Default },
				fmt.Sprintf("%s rejects its own default for %s, and not all sides can have the field", n.names[v.side], name))
			return false
		}
		if !ok || !v.refers.mayName(name) {
			continue
		}
		if f.defaulted[v.side] {
			n.conflict(at, "default", views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.Properties[name].Default },
				fmt.Sprintf("%s has a default for %s and rules about it, and not all sides can have the field", n.names[v.side], name))
			return false
		}
		kept = append(kept, v.child(&property))
	}
	if kept == nil && rest != restDropped && rest != restRefused && len(f.views) > 0 {
		kept = f.views
	}
	if kept != nil {
		set(out, name, refused(kept))
	}
	return true
}

func set(out *apiextensionsv1.JSONSchemaProps, name string, property *apiextensionsv1.JSONSchemaProps) {
	if out.Properties == nil {
		out.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	out.Properties[name] = *property
}

// counts merges the limits of the number of fields. The limit of a side is reduced by the fields that this side fills
// in and the result does not have.
func (n *negotiator) counts(at position, views []view, out *apiextensionsv1.JSONSchemaProps, kind string) bool {
	for _, v := range views {
		if v.s.MaxProperties == nil {
			continue
		}
		room := *v.s.MaxProperties
		for name, property := range v.s.Properties {
			if kept, ok := out.Properties[name]; hasDefault(&property) && (!ok || kept.Not != nil) {
				room--
			}
		}
		if out.MaxProperties == nil || room < *out.MaxProperties {
			out.MaxProperties = &room
		}
	}
	compare(n, at, "maxProperties", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxProperties }, out.MaxProperties)
	if kind == "object" && (over(out.MinProperties, out.MaxProperties) || out.MaxProperties != nil && *out.MaxProperties < 0) {
		n.conflict(at, "maxProperties", views, func(s *apiextensionsv1.JSONSchemaProps) any { return []*int64{s.MinProperties, s.MaxProperties} }, "no number of fields is in all of the ranges")
		return false
	}
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedSet(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(list)))
}
