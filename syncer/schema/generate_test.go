// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"pgregory.net/rapid"
)

// generator makes random schemas and objects. It takes only its seed from rapid: the numbers of rapid are mostly
// small, and would give schemas that are too much alike.
type generator struct {
	r     *rand.Rand
	plain bool // without defaults, rules and unknown fields
}

func newGenerator(t *rapid.T) generator {
	return generator{r: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
}

type props = apiextensionsv1.JSONSchemaProps

var (
	names    = []string{"a", "b", "c", "d-e"}
	strs     = []string{"", "a", "b", "ab", "abc", "x1", "10.0.0.1", "2026-01-02", "0f8fad5b-d9cb-469f-a165-70867728950e"}
	patterns = []string{"^a", "b$", "^[a-z]*$", "1"}
	formats  = []string{"ipv4", "uuid", "date"}
	values   = []float64{-3, -1, 0, 1, 2, 3, 5, 0.5, 2.5}
)

func (g generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func pick[T any](g generator, list []T) T { return list[g.r.IntN(len(list))] }

func (g generator) between(low, high int) int { return low + g.r.IntN(high-low+1) }

func (g generator) number() *float64 { return new(pick(g, values)) }
func (g generator) count() *int64    { return new(int64(g.between(0, 3))) }

func raw(v any) apiextensionsv1.JSON {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return apiextensionsv1.JSON{Raw: text}
}

// resource makes the schema of a whole type.
func (g generator) resource() *props {
	spec := g.object(3)
	out := &props{Type: "object", Properties: map[string]props{"spec": *spec}}
	if g.chance(30) {
		out.Required = []string{"spec"}
	}
	return out
}

// variant returns a schema like s with some parts replaced.
func (g generator) variant(s *props, depth int) *props {
	out := s.DeepCopy()
	for _, name := range slices.Sorted(maps.Keys(out.Properties)) {
		property := out.Properties[name]
		switch {
		case depth > 0 && g.chance(10):
			delete(out.Properties, name)
			out.Required = slices.DeleteFunc(out.Required, func(r string) bool { return r == name })
		case g.chance(15):
			out.Properties[name] = *g.any(2)
		default:
			out.Properties[name] = *g.variant(&property, depth+1)
		}
	}
	if out.Items != nil && g.chance(50) {
		out.Items.Schema = g.variant(out.Items.Schema, depth+1)
	}
	if out.AdditionalProperties != nil && out.AdditionalProperties.Schema != nil && g.chance(50) {
		out.AdditionalProperties.Schema = g.variant(out.AdditionalProperties.Schema, depth+1)
	}
	if depth > 0 && g.chance(40) {
		g.limit(out)
	}
	return out
}

// any makes a schema of any type.
func (g generator) any(depth int) *props {
	if g.plain && depth == 0 {
		return g.scalar()
	}
	kinds := []string{"string", "integer", "number", "boolean", "int-or-string", "any", "object", "object", "map", "array", "array"}
	if depth == 0 {
		kinds = kinds[:6]
	}
	if g.plain {
		kinds = []string{"object", "object", "array", "string", "integer", "number", "boolean", "int-or-string"}
	}
	var out *props
	switch kind := pick(g, kinds); kind {
	case "object":
		return g.object(depth)
	case "map":
		out = &props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}}
		if !g.chance(15) {
			out.AdditionalProperties.Schema = g.any(depth - 1)
		}
	case "array":
		out = &props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.any(depth - 1)}}
	case "int-or-string":
		out = &props{XIntOrString: true}
		if g.chance(50) {
			out.AnyOf = []props{{Type: "integer"}, {Type: "string"}}
		}
	case "any":
		out = &props{XPreserveUnknownFields: new(true)}
	default:
		out = &props{Type: kind}
	}
	g.limit(out)
	return out
}

func (g generator) scalar() *props {
	out := &props{Type: pick(g, []string{"string", "integer", "number", "boolean"})}
	g.limit(out)
	return out
}

func (g generator) object(depth int) *props {
	out := &props{Type: "object", Properties: map[string]props{}}
	for _, name := range names {
		if g.chance(70) {
			out.Properties[name] = *g.any(depth - 1)
		}
	}
	g.limit(out)
	return out
}

// limit adds limits to a schema.
func (g generator) limit(s *props) {
	if g.chance(10) {
		s.Nullable = !s.Nullable
	}
	if g.chance(10) {
		s.Description = pick(g, strs)
	}
	numeric := s.Type == "integer" || s.Type == "number" || s.XIntOrString
	switch {
	case s.Type == "object":
		g.limitObject(s)
	case s.Type == "array":
		g.limitArray(s)
	}
	if numeric {
		if g.chance(25) {
			s.Maximum, s.ExclusiveMaximum = g.number(), g.chance(40)
		}
		if g.chance(25) {
			s.Minimum, s.ExclusiveMinimum = g.number(), g.chance(40)
		}
		if g.chance(10) {
			s.MultipleOf = new(pick(g, []float64{1, 2, 3, 0.5}))
		}
		if g.chance(10) {
			s.Format = pick(g, []string{"int32", "int64", "double", "float"})
		}
	}
	if s.Type == "string" || s.XIntOrString {
		if g.chance(15) {
			s.MaxLength = g.count()
		}
		if g.chance(15) {
			s.MinLength = g.count()
		}
		if g.chance(15) {
			s.Pattern = pick(g, patterns)
		}
		if g.chance(8) && s.Type == "string" {
			s.Format = pick(g, formats)
		}
	}
	if g.chance(12) && s.Type != "object" && s.Type != "array" {
		s.Enum = nil
		for range g.between(1, 4) {
			e := raw(g.value(&props{Type: s.Type, XIntOrString: s.XIntOrString, XPreserveUnknownFields: s.XPreserveUnknownFields}, 0))
			if !slices.ContainsFunc(s.Enum, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(e.Raw) }) {
				s.Enum = append(s.Enum, e)
			}
		}
	}
	if g.chance(10) {
		g.junctor(s)
	}
	if g.chance(12) && !g.plain {
		g.rule(s)
	}
	// API servers do not check defaults against list types.
	if s.XListType != nil {
		s.Default = nil
	}
	if g.chance(15) && s.XListType == nil && !g.plain {
		s.Default = nil
		if v := g.value(s, 2); !null(v) && g.chance(80) {
			s.Default = new(raw(v))
		}
	}
}

func (g generator) limitObject(s *props) {
	if g.chance(15) {
		s.MaxProperties = g.count()
	}
	if g.chance(10) {
		s.MinProperties = g.count()
	}
	if g.chance(15) && !g.plain && (s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil) {
		s.XPreserveUnknownFields = new(true)
	}
	if g.chance(30) {
		s.Required = nil
		for _, name := range names {
			if _, ok := s.Properties[name]; ok && g.chance(40) {
				s.Required = append(s.Required, name)
			}
		}
	}
	if g.chance(5) {
		s.XMapType = new("atomic")
	}
	if g.chance(5) && s.AdditionalProperties == nil && !g.plain {
		s.XEmbeddedResource, s.XPreserveUnknownFields = true, new(true)
	}
}

func (g generator) limitArray(s *props) {
	if g.chance(20) {
		s.MaxItems = g.count()
	}
	if g.chance(10) {
		s.MinItems = g.count()
	}
	if !g.chance(50) {
		return
	}
	s.XListType, s.XListMapKeys = nil, nil
	item := s.Items.Schema
	switch item.Type {
	case "object":
		if item.AdditionalProperties != nil {
			return
		}
		for _, name := range names {
			p, ok := item.Properties[name]
			if ok && p.Type != "object" && p.Type != "array" && p.Type != "" && g.chance(60) {
				s.XListMapKeys = append(s.XListMapKeys, name)
				p.Nullable = false
				item.Properties[name] = p
				if p.Default == nil && !slices.Contains(item.Required, name) {
					item.Required = append(item.Required, name)
				}
			}
		}
		if len(s.XListMapKeys) > 0 {
			s.XListType, item.Nullable = new("map"), false
		}
	case "string", "integer", "boolean":
		s.XListType, item.Nullable = new("set"), false
	}
}

func (g generator) junctor(s *props) {
	clause := func() props {
		switch {
		case s.Type == "object":
			name := pick(g, names)
			property, ok := s.Properties[name]
			switch {
			case ok && property.Type == "integer" && g.chance(70):
				return props{Properties: map[string]props{name: {Minimum: g.number()}}}
			case ok && property.Type == "string" && g.chance(70):
				return props{Properties: map[string]props{name: {Pattern: pick(g, patterns)}}}
			}
			return props{Required: []string{name}}
		case s.Type == "array":
			return props{MaxItems: g.count()}
		case s.Type == "string":
			return pick(g, []props{{MaxLength: g.count()}, {Pattern: pick(g, patterns)}, {Enum: []apiextensionsv1.JSON{raw(pick(g, strs))}}})
		}
		return pick(g, []props{{Maximum: g.number()}, {Minimum: g.number()}})
	}
	switch pick(g, []string{"allOf", "anyOf", "oneOf", "not"}) {
	case "allOf":
		s.AllOf = []props{clause()}
	case "anyOf":
		s.AnyOf = []props{clause(), clause()}
	case "oneOf":
		s.OneOf = []props{clause(), clause()}
	case "not":
		s.Not = new(clause())
	}
}

func (g generator) rule(s *props) {
	var pool []string
	switch {
	case s.Type == "object" && len(s.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			escaped := map[string]string{"d-e": "d__dash__e"}[name]
			if escaped == "" {
				escaped = name
			}
			pool = append(pool, fmt.Sprintf("has(self.%s)", escaped), fmt.Sprintf("!has(self.%s)", escaped))
			switch s.Properties[name].Type {
			case "integer":
				pool = append(pool, fmt.Sprintf("!has(self.%s) || self.%s > 0", escaped, escaped))
			case "string":
				pool = append(pool, fmt.Sprintf("has(self.%s) && self.%s != 'a'", escaped, escaped))
			}
		}
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil, s.Type == "array":
		pool = []string{"self.size() < 2", "self.size() != 1"}
	case s.Type == "integer":
		pool = []string{"self > 0", "self != 2"}
	case s.Type == "number":
		pool = []string{"self > 0.0", "self < 2.5"}
	case s.Type == "string":
		pool = []string{"self != 'a'", "self.size() < 3"}
	}
	if len(pool) > 0 {
		s.XValidations = apiextensionsv1.ValidationRules{{Rule: pick(g, pool)}}
	}
}

// value makes a value that the schema often accepts.
func (g generator) value(s *props, depth int) any {
	if g.chance(3) || s.Nullable && g.chance(20) {
		return nil
	}
	if len(s.Enum) > 0 && g.chance(90) {
		var out any
		if err := unmarshal(pick(g, s.Enum).Raw, &out); err != nil {
			panic(err)
		}
		return out
	}
	kind := s.Type
	switch {
	case g.chance(2):
		kind = pick(g, []string{"string", "integer", "number", "boolean", "object", "array"})
	case s.XIntOrString:
		kind = pick(g, []string{"string", "integer"})
	case kind == "":
		kind = pick(g, []string{"string", "integer", "number", "boolean", "object", "array"})
	}
	switch kind {
	case "string":
		return pick(g, strs)
	case "integer":
		return int64(g.between(-4, 6))
	case "number":
		if g.chance(50) {
			return int64(g.between(-4, 6))
		}
		return pick(g, append([]float64{0.25, 1.5}, values...))
	case "boolean":
		return g.chance(50)
	case "array":
		out := []any{}
		item := &props{XPreserveUnknownFields: new(true)}
		if s.Items != nil {
			item = s.Items.Schema
		}
		if depth > 0 {
			for range g.between(0, 3) {
				out = append(out, g.value(item, depth-1))
			}
		}
		return out
	}
	return g.fields(s, depth)
}

func (g generator) fields(s *props, depth int) any {
	out := map[string]any{}
	if s.XEmbeddedResource && g.chance(90) {
		out["apiVersion"], out["kind"] = "v1", "Thing"
	}
	for _, name := range append(slices.Clone(names), "extra") {
		property, ok := s.Properties[name]
		switch {
		case ok && (slices.Contains(s.Required, name) && g.chance(95) || g.chance(60)):
			out[name] = g.value(&property, depth-1)
		case !ok && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && depth > 0 && g.chance(40):
			out[name] = g.value(s.AdditionalProperties.Schema, depth-1)
		case !ok && depth > 0 && (s.XPreserveUnknownFields != nil && g.chance(40) || g.chance(6)):
			out[name] = g.value(&props{}, depth-1)
		}
	}
	return out
}

// null reports whether a value contains null: API servers accept it in a default, and later reject the objects with
// that default.
func null(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), null)
	case []any:
		return slices.ContainsFunc(v, null)
	}
	return false
}

// document makes an object of a type.
func (g generator) document(s *props) map[string]any {
	out := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"}}
	if spec, ok := s.Properties["spec"]; ok && g.chance(95) {
		out["spec"] = g.value(&spec, 4)
	}
	return out
}
