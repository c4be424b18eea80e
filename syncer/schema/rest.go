// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// remainder is the treatment of undeclared fields.
type remainder int

const (
	restDropped remainder = iota // pruned
	restAny                      // kept unchanged
	restScalars                  // kept, but objects in them lose their fields
	restSchema                   // kept if additionalProperties accepts them
	restRefused                  // an error
)

// restOf returns the treatment of undeclared fields in the result: the strictest one of all views. If only some of the
// sides refuse undeclared fields, the result drops them.
func restOf(at position, views []view) remainder {
	var found [restRefused + 1]int
	for _, v := range views {
		found[restOne(v)]++
	}
	if at.meta {
		found[restAny], found[restDropped] = found[restAny]+found[restDropped]+found[restScalars], 0
		found[restScalars] = 0
	}
	switch {
	case found[restRefused] == len(views):
		return restRefused
	case found[restRefused] > 0:
		return restDropped
	case found[restDropped] > 0:
		return restDropped
	case found[restSchema] > 0:
		return restSchema
	case found[restScalars] > 0:
		return restScalars
	}
	return restAny
}

func restOne(v view) remainder {
	rest := v.s.AdditionalProperties
	switch {
	case rest != nil && rest.Schema != nil:
		return restSchema
	case rest != nil && rest.Allows:
		return restScalars
	case rest != nil:
		return restRefused
	case v.preserve:
		return restAny
	}
	return restDropped
}

// mergeUndeclared merges the treatment of undeclared fields. It returns false if the sides' treatments cannot be
// merged.
func (n *negotiator) mergeUndeclared(at position, views []view, out *apiextensionsv1.JSONSchemaProps, undeclared remainder) bool {
	if undeclared == restSchema && at.meta && len(out.Properties) > 0 {
		n.conflict(at, "additionalProperties", views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.AdditionalProperties }, "metadata cannot be limited by properties and by additionalProperties")
		return false
	}
	n.setRest(at, views, out, undeclared)
	result := restOne(view{s: out, preserve: preserves(out)})
	if undeclared == restAny && at.meta {
		return true
	}
	values := make([]any, len(views))
	for i, v := range views {
		values[i] = restName(restOne(v))
	}
	n.report(at, "additionalProperties", Narrows, views, values, restName(result), "")
	return true
}

// setRest writes the treatment of undeclared fields. API servers allow either properties, or a schema for all other
// fields. If the sides together have both, the result drops the other fields.
func (n *negotiator) setRest(at position, views []view, out *apiextensionsv1.JSONSchemaProps, rest remainder) {
	switch rest {
	case restAny:
		if all(views, preserving) {
			out.XPreserveUnknownFields = new(true)
		}
	case restRefused:
		if len(out.Properties) == 0 {
			out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{}
		}
	case restScalars:
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}
	case restSchema:
		if len(out.Properties) == 0 && !out.XEmbeddedResource {
			n.values(at, views, out)
		}
	case restDropped:
	}
	if out.Type == "" {
		out.XPreserveUnknownFields = new(true) // required where there is no type
	}
}

// values merges the schemas of the values of maps. If no value is accepted by all sides, the map must be empty.
func (n *negotiator) values(at position, views []view, out *apiextensionsv1.JSONSchemaProps) {
	var below []view
	for _, v := range views {
		rest := v.s.AdditionalProperties
		switch {
		case rest != nil && rest.Schema != nil:
			below = append(below, v.child(rest.Schema))
		case rest != nil:
			below = append(below, v.anyScalar())
		}
	}
	merged, ok := n.meet(position{path: join(at.path, "*")}, below)
	if !ok {
		merged = refused(below)
		out.MaxProperties = new(int64(0))
	}
	out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: merged}
}

func restName(r remainder) string {
	switch r {
	case restAny:
		return "unknown fields are kept"
	case restScalars:
		return "any scalar"
	case restSchema:
		return "schema"
	case restRefused:
		return "refused"
	case restDropped:
	}
	return ""
}
