// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// in returns the schema of a type whose spec has the given schema.
func in(t *testing.T, text string) *props {
	return &props{Type: "object", Properties: map[string]props{"spec": *schemaOf(t, text)}}
}

func TestNegotiate(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		want       string // the schema of spec, empty if the field is removed
		differ     []string
	}{
		{"a new enum narrows", `{type: string}`, `{type: string, enum: [v, w]}`, `{type: string, enum: [v, w]}`,
			[]string{`spec: enum: narrows: a nothing, b ["v","w"]`}},
		{"enums that share nothing leave nothing", `{type: string, enum: [x]}`, `{type: string, enum: [w]}`, ``,
			[]string{`spec: enum: conflicts: a ["x"], b ["w"] (no value is in all of them)`}},
		{"enums intersect", `{type: string, enum: [v, w]}`, `{type: string, enum: [w, z]}`, `{type: string, enum: [w]}`,
			[]string{`spec: enum: narrows: a ["v","w"], b ["w","z"]`}},
		{"an enum's values are held against the other side", `{type: string, enum: [x, long]}`, `{type: string, maxLength: 1}`, `{type: string, enum: [x], maxLength: 1}`, nil},
		{"formats of numbers say nothing of an int-or-string", `{x-kubernetes-int-or-string: true, format: int32, enum: [x, 5]}`, `{x-kubernetes-int-or-string: true, format: float, allOf: [{format: int64}]}`,
			`{x-kubernetes-int-or-string: true, enum: [x, 5], allOf: [{format: int64}]}`, nil},
		{"a format that is a clause refuses integers", `{x-kubernetes-int-or-string: true, format: uri, enum: ["a:b", 5]}`, `{x-kubernetes-int-or-string: true, format: duration}`, ``, nil},
		{"integer is a number", `{type: number, maximum: 10}`, `{type: integer}`, `{type: integer, maximum: 10}`, nil},
		{"the fraction of a bound stays as it was", `{type: number, maximum: 2.5}`, `{type: integer}`, `{type: integer, allOf: [{maximum: 2.5}]}`, nil},
		{"the tighter bound, exclusive if equal", `{type: integer, maximum: 5, minimum: 1}`, `{type: integer, maximum: 5, exclusiveMaximum: true, minimum: 2}`,
			`{type: integer, maximum: 5, exclusiveMaximum: true, minimum: 2}`, nil},
		{"ranges that do not meet", `{type: integer, maximum: 1}`, `{type: integer, minimum: 2}`, ``, nil},
		{"an exclusive bound leaves no integer", `{type: integer, maximum: 2, exclusiveMaximum: true}`, `{type: integer, minimum: 2}`, ``, nil},
		{"factors", `{type: integer, multipleOf: 2}`, `{type: integer, multipleOf: 3}`, `{type: integer, multipleOf: 2, allOf: [{multipleOf: 3}]}`, nil},
		{"patterns and formats all hold", `{type: string, pattern: ^a, format: uuid}`, `{type: string, pattern: b$, format: ipv4}`,
			`{type: string, pattern: ^a, format: ipv4, allOf: [{format: uuid}, {pattern: b$}]}`, nil},
		{"lengths", `{type: string, maxLength: 5}`, `{type: string, minLength: 2, maxLength: 7}`, `{type: string, minLength: 2, maxLength: 5}`, nil},
		{"a number of 32 bits has no bound beyond them", `{type: integer, format: int32}`, `{type: integer, maximum: 5000000000}`, `{type: integer, format: int32}`, nil},
		{"int-or-string and string", `{x-kubernetes-int-or-string: true}`, `{type: string}`, `{type: string}`, nil},
		{"int-or-string and integer", `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`, `{type: integer}`, `{type: integer}`, nil},
		{"null only where all have it", `{type: string, nullable: true}`, `{type: string}`, `{type: string}`, []string{`spec: nullable: narrows: a true, b nothing`}},
		{"types that share nothing", `{type: string}`, `{type: boolean}`, ``, []string{`spec: type: conflicts: a "string", b "boolean"`}},
		{"anything and something", `{x-kubernetes-preserve-unknown-fields: true}`, `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, nil},
		{"a field that one side does not have", `{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`,
			`{type: object, properties: {a: {type: string}}}`, []string{`spec.b: properties: narrows: a "string", b nothing (not every side has this field)`}},
		{"a required field that one side does not have", `{type: object, required: [b], properties: {b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, ``, nil},
		{"required by either", `{type: object, required: [a], properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`,
			`{type: object, required: [a], properties: {a: {type: string}}}`, []string{`spec: required: narrows: a ["a"], b nothing`}},
		{"required and filled in", `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string, default: x}}}`,
			`{type: object, required: [a], properties: {a: {type: string, default: x}}}`, []string{`spec: required: narrows: a ["a"], b nothing`}},
		{"a default that nobody contradicts", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string}}}`,
			`{type: object, properties: {a: {type: string, default: x}}}`, []string{`spec.a: default: cosmetic: a "x", b nothing`}},
		{"defaults that contradict", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string, default: w}}}`,
			`{type: object, required: [a], properties: {a: {type: string}}}`,
			[]string{`spec: required: narrows: a nothing, b nothing`, `spec.a: default: narrows: a "x", b "w" (the field is required, since the sides have no common default)`}},
		{"a default that the other side refuses", `{type: object, properties: {a: {type: string, default: long}}}`, `{type: object, properties: {a: {type: string, maxLength: 2}}}`,
			`{type: object, required: [a], properties: {a: {type: string, maxLength: 2}}}`, nil},
		{"a map and fields", `{type: object, additionalProperties: {type: string, maxLength: 3}}`, `{type: object, properties: {a: {type: string}}}`,
			`{type: object, properties: {a: {type: string, maxLength: 3}}}`, nil},
		{"maps", `{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string, minLength: 1}, maxProperties: 3}`,
			`{type: object, additionalProperties: {type: string, minLength: 1}, maxProperties: 3}`, nil},
		{"maps that share no value must be empty", `{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: integer}}`,
			`{type: object, additionalProperties: {type: integer, not: {}}, maxProperties: 0}`, nil},
		{"a side that fills in a field of its own has room for fewer", `{type: object, maxProperties: 2, properties: {a: {type: string}, b: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string}}}`,
			`{type: object, maxProperties: 1, properties: {a: {type: string}}}`, nil},
		{"lists of items that share nothing must be empty", `{type: array, items: {type: string}}`, `{type: array, items: {type: integer}}`, `{type: array, maxItems: 0, items: {type: integer, not: {}}}`, nil},
		{"a default that its own side refuses, of a field that is gone", `{type: object, properties: {b: {type: string}, a: {type: array, default: [[1, 1]], items: {type: array, x-kubernetes-list-type: set, items: {type: integer}}}}}`,
			`{type: object, properties: {b: {type: string}}}`, ``, nil},
		{"a default that is a list is none of a string with a format", `{type: object, properties: {a: {x-kubernetes-preserve-unknown-fields: true, default: [x]}}}`, `{type: object, properties: {a: {type: string, format: date}}}`,
			`{type: object, required: [a], properties: {a: {type: string, format: date}}}`, nil},
		{"a list that must be empty has no keys", `{type: array, items: {type: object, maxProperties: 0, properties: {a: {type: string, nullable: true}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], minProperties: 1, properties: {a: {type: string}}}}`,
			`{type: array, maxItems: 0, items: {type: object, maxProperties: 0, properties: {a: {type: string, nullable: true}}, not: {}}}`, nil},
		{"the stricter list type", `{type: array, items: {type: string}}`, `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, nil},
		{"keys in common", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b], items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}}`, nil},
		{"no keys in common: one item at most", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a], properties: {a: {type: string}, b: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b], items: {type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}}`,
			`{type: array, maxItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a], items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}}`, nil},
		{"the rules of both", `{type: integer, x-kubernetes-validations: [{rule: self > 0}]}`, `{type: integer, x-kubernetes-validations: [{rule: self > 0, message: positive}, {rule: self != 3}]}`,
			`{type: integer, x-kubernetes-validations: [{rule: self != 3}, {rule: self > 0, message: positive}]}`, nil},
		{"a rule about a field that is gone: it can be declared, not set", `{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) || has(self.b)}]}`,
			`{type: object, properties: {a: {type: string}}}`,
			`{type: object, properties: {a: {type: string}, b: {type: string, not: {}}}, x-kubernetes-validations: [{rule: has(self.a) || has(self.b)}]}`, nil},
		{"a rule about a field that is gone and filled in", `{type: object, properties: {a: {type: string}, b: {type: string, default: x}}, x-kubernetes-validations: [{rule: has(self.a) || has(self.b)}]}`,
			`{type: object, properties: {a: {type: string}}}`, ``,
			[]string{`spec: default: conflicts: a "x", b nothing (a has a default for b and rules about it, and not all sides can have the field)`, `spec.b: properties: narrows: a "string", b nothing (not every side has this field)`}},
		{"a rule about a field of another type", `{type: object, properties: {a: {type: number}}, x-kubernetes-validations: [{rule: self.a + 1.5 > 2.0}]}`,
			`{type: object, properties: {a: {type: integer}}}`, ``,
			[]string{`spec: x-kubernetes-validations: conflicts: a ["self.a + 1.5 > 2.0"], b nothing (a has rules that cannot be carried over: spec.a has another type in the result or is absent there)`, `spec.a: type: narrows: a "number", b "integer"`}},
		{"junctors of both", `{type: integer, anyOf: [{minimum: 5}, {maximum: 1}], not: {enum: [7]}}`, `{type: integer, anyOf: [{minimum: 6}, {maximum: 2}], oneOf: [{maximum: 9}]}`,
			`{type: integer, anyOf: [{minimum: 5}, {maximum: 1}], oneOf: [{maximum: 9}], not: {enum: [7]}, allOf: [{anyOf: [{minimum: 6}, {maximum: 2}]}]}`, nil},
		{"an embedded resource", `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true}`,
			`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`, nil},
		{"an embedded resource that would be pruned", `{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, properties: {a: {type: string}}}`, ``, nil},
		{"descriptions are cosmetic", `{type: string, description: x}`, `{type: string, description: w}`, `{type: string, description: x}`, []string{`spec: description: cosmetic: a "x", b "w"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := schema.Side{Name: "a", Schema: in(t, test.a)}, schema.Side{Name: "b", Schema: in(t, test.b)}
			for _, s := range []schema.Side{a, b} {
				require.NoError(t, installable(s.Schema), "the test's own schema")
			}
			n, err := schema.Negotiate(a, b)
			require.NoError(t, err)
			require.NoError(t, installable(n.Schema))
			if test.want == "" {
				require.Empty(t, n.Schema.Properties, show(n.Schema))
			} else {
				require.Equal(t, show(in(t, test.want)), show(n.Schema))
			}
			require.NotEmpty(t, n.Differences)
			if test.differ != nil {
				require.Equal(t, fmt.Sprint(test.differ), fmt.Sprint(texts(n.Differences)))
			}
		})
	}
}

func texts(differences []schema.Difference) []string {
	var out []string
	for _, d := range differences {
		out = append(out, d.String())
	}
	return out
}

func TestConflictOfARequiredField(t *testing.T) {
	a, b := in(t, `{type: string}`), in(t, `{type: integer}`)
	a.Required = []string{"spec"}
	_, err := schema.Negotiate(schema.Side{Name: "a", Schema: a}, schema.Side{Name: "b", Schema: b})
	var conflict *schema.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.EqualError(t, err, `no object is accepted by all sides: the root: required: conflicts: a ["spec"], b nothing (spec is required and cannot be set); spec: type: conflicts: a "string", b "integer"`)
}

func TestNegotiateRefuses(t *testing.T) {
	ok := in(t, `{type: string}`)
	for want, sides := range map[string][]schema.Side{
		"negotiate schemas: no sides: give at least one":                                      nil,
		`negotiate schemas: sides[1].Name is "a": want a name that no other side has`:         {{Name: "a", Schema: ok}, {Name: "a", Schema: ok}},
		`negotiate schemas: a has no schema`:                                                  {{Name: "a"}},
		`negotiate schemas: a: spec: $ref: structural schemas have no references, resolve it`: {{Name: "a", Schema: in(t, `{$ref: "#/x"}`)}},
		`negotiate schemas: a: spec: patternProperties: not allowed in structural schemas`:    {{Name: "a", Schema: in(t, `{patternProperties: {x: {}}}`)}},
		`negotiate schemas: a: spec.x: dependencies: not allowed in structural schemas`:       {{Name: "a", Schema: in(t, `{properties: {x: {dependencies: {a: [b]}}}}`)}},
		`negotiate schemas: a: spec[*]: definitions: not allowed in structural schemas`:       {{Name: "a", Schema: in(t, `{items: {definitions: {a: {}}}}`)}},
		`negotiate schemas: a: spec: items: want one schema, not a list of schemas`:           {{Name: "a", Schema: in(t, `{items: [{}, {}]}`)}},
		`negotiate schemas: a: spec.*: additionalItems: not allowed in structural schemas`:    {{Name: "a", Schema: in(t, `{additionalProperties: {additionalItems: true}}`)}},
	} {
		_, err := schema.Negotiate(sides...)
		require.EqualError(t, err, want)
	}
}

func TestInputsAreNotShared(t *testing.T) {
	a, b := in(t, `{type: object, properties: {x: {type: string, enum: [p, q]}}}`), in(t, `{type: object, properties: {x: {type: string, enum: [q]}}}`)
	before := show(a) + show(b)
	n, err := schema.Negotiate(schema.Side{Name: "a", Schema: a}, schema.Side{Name: "b", Schema: b})
	require.NoError(t, err)
	x := n.Schema.Properties["spec"].Properties["x"]
	x.Enum[0].Raw[1] = 'Z'
	n.Schema.Properties["spec"].Properties["x"] = props{}
	require.Equal(t, before, show(a)+show(b))
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want schema.Relation
	}{
		{`{type: string}`, `{type: string, description: the same}`, schema.Equal},
		{`{type: string, maxLength: 3}`, `{type: string, maxLength: 5}`, schema.Subset},
		{`{type: number}`, `{type: integer}`, schema.Superset},
		{`{type: string, maxLength: 3}`, `{type: string, minLength: 2}`, schema.Overlap},
		{`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}, b: {type: string}}}`, schema.Subset},
		{`{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}, b: {type: string, default: x}}}`, schema.Subset},
		// An empty object is accepted by the first schema only: the second one fills in the field that the rule forbids.
		{`{type: object, properties: {a: {type: string}}, x-kubernetes-validations: [{rule: "!has(self.a)"}]}`,
			`{type: object, properties: {a: {type: string, default: x}}, x-kubernetes-validations: [{rule: "!has(self.a)"}]}`, schema.Superset},
	} {
		c, err := schema.Compare(schema.Side{Name: "a", Schema: in(t, test.a)}, schema.Side{Name: "b", Schema: in(t, test.b)})
		require.NoError(t, err)
		require.Equal(t, test.want, c.Relation, "%s and %s: %v", test.a, test.b, c.Differences)
	}
	a, b := in(t, `{type: string}`), in(t, `{type: integer}`)
	a.Required = []string{"spec"}
	c, err := schema.Compare(schema.Side{Name: "a", Schema: a}, schema.Side{Name: "b", Schema: b})
	require.NoError(t, err)
	require.Equal(t, schema.Disjoint, c.Relation)
}

func TestAccepts(t *testing.T) {
	ok, why, err := schema.Accepts(in(t, `{type: string, maxLength: 3}`), in(t, `{type: string}`))
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, []string{`spec: maxLength: narrows: inner nothing, outer 3`}, texts(why))
	ok, _, err = schema.Accepts(in(t, `{type: string}`), in(t, `{type: string, maxLength: 3}`))
	require.NoError(t, err)
	require.True(t, ok)
}

// API servers accept a list for a string with a format, and reject it for a string without one: see doc.go. If they
// begin to reject it for both, remove that note, the func lists of the tests, and noListForString.
func TestListsForStringsWithAFormat(t *testing.T) {
	for schema, taken := range map[string]bool{`{type: string}`: false, `{type: string, format: date}`: true} {
		j, err := newJudge(in(t, schema))
		require.NoError(t, err)
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "spec": []any{}}
		_, _, err = j.admit(object)
		require.ErrorContains(t, err, "spec")
		j.lax = true
		_, _, err = j.admit(object)
		require.Equal(t, taken, err == nil, "%s: %v", schema, err)
	}
}
