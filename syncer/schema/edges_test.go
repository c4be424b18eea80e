// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/syncer/schema"
)

func negotiated(t *testing.T, a, b string) *schema.Negotiation {
	t.Helper()
	n, err := schema.Negotiate(schema.Side{Name: "a", Schema: in(t, a)}, schema.Side{Name: "b", Schema: in(t, b)})
	require.NoError(t, err)
	return n
}

// Each row has a rule of a keyword at its edge. Both orders of the sides have the same result.
func TestEdges(t *testing.T) {
	for _, test := range []struct {
		name, a, b, want string // empty: the field is removed
	}{
		{"equal numbers are one value of an enum", `{type: number, enum: [1, 2]}`, `{type: number, enum: [1.0, 3]}`, `{type: number, enum: [1.0]}`},
		{"a default that all sides have stays", `{type: string, default: x, maxLength: 5}`, `{type: string, default: x, maxLength: 7}`, `{type: string, default: x, maxLength: 5}`},
		{"defaults that differ are left out", `{type: string, default: x, maxLength: 5}`, `{type: string, default: w, maxLength: 7}`, `{type: string, maxLength: 5}`},
		{"a default that one side has stays", `{type: string, default: x, maxLength: 5}`, `{type: string, maxLength: 7}`, `{type: string, default: x, maxLength: 5}`},
		{"the tighter bound only is exclusive", `{type: integer, maximum: 5}`, `{type: integer, maximum: 9, exclusiveMaximum: true}`, `{type: integer, maximum: 5}`},
		{"an exclusive bound that is tighter", `{type: integer, maximum: 5, exclusiveMaximum: true}`, `{type: integer, maximum: 9}`, `{type: integer, maximum: 5, exclusiveMaximum: true}`},
		{"numbers of 32 bits have no bound below them", `{type: integer, format: int32}`, `{type: integer, minimum: -5000000000}`, `{type: integer, format: int32}`},
		{"floats have no bound below them", `{type: number, format: float}`, `{type: number, minimum: -1e39}`, `{type: number, format: float}`},
		{"a bound within floats stays", `{type: number, format: float}`, `{type: number, minimum: -1e38}`, `{type: number, format: float, minimum: -1e38}`},
		{"lengths of lists that do not meet", `{type: array, minItems: 3, items: {type: string}}`, `{type: array, maxItems: 2, items: {type: string}}`, ``},
		{"lengths of lists that meet", `{type: array, minItems: 2, items: {type: string}}`, `{type: array, maxItems: 2, items: {type: string}}`, `{type: array, minItems: 2, maxItems: 2, items: {type: string}}`},
		{"keys of a list become required", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l], items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, items: {type: object, properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l], items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}`},
		{"without a shared key there is at most one item", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l], items: {type: object, required: [l], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, maxItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}`},
		{"at most one item, and at most five", `{type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l], items: {type: object, required: [l], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, maxItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}`},
		{"at most one item, and none", `{type: array, maxItems: 0, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l], items: {type: object, required: [l], properties: {k: {type: string}, l: {type: string}}}}`,
			`{type: array, maxItems: 0, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}}`},
		{"the companion of int-or-string stays one", `{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {maxLength: 5}]}`, `{x-kubernetes-int-or-string: true, maxLength: 9}`,
			`{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], allOf: [{maxLength: 5}], maxLength: 9}`},
		{"unknown fields of a whole object", `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}}}`,
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}, c: {type: string}}}`,
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: object, properties: {b: {type: string}}}, c: {type: string}}}`},
		{"unknown fields in the items of a list", `{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: object}}`,
			`{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 7, items: {type: object}}`, `{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}`},
		{"an embedded resource without a shared field", `{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}`,
			`{type: object, x-kubernetes-embedded-resource: true, properties: {status: {type: string}}}`,
			`{type: object, x-kubernetes-embedded-resource: true, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}}}`},
		{"an embedded resource with a shared field", `{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}, a: {type: string}}}`,
			`{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}`,
			`{type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: string}}}`},
		{"atomic maps stay", `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}`,
			`{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}`},
		{"map types that differ are left out", `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}`, `{type: object, x-kubernetes-map-type: granular, properties: {a: {type: string}}}`,
			`{type: object, properties: {a: {type: string}}}`},
		{"values of a map without a schema are scalars", `{type: object, additionalProperties: true}`, `{type: object, additionalProperties: {type: array, items: {type: string}}}`,
			`{type: object, additionalProperties: {type: array, items: {type: string}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, sides := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
				got, there := negotiated(t, sides[0], sides[1]).Schema.Properties["spec"]
				if test.want == "" {
					require.False(t, there, show(&got))
					continue
				}
				require.Equal(t, show(schemaOf(t, test.want)), show(&got))
			}
		})
	}
}

func TestTextsOfTheFirstSideStay(t *testing.T) {
	spec := negotiated(t, `{type: string, maxLength: 3, title: one, externalDocs: {url: "https://one"}, example: a}`,
		`{type: string, title: two, description: two, externalDocs: {url: "https://two"}, example: b}`).Schema.Properties["spec"]
	require.Equal(t, "one", spec.Title)
	require.Equal(t, "two", spec.Description)
	require.Equal(t, "https://one", spec.ExternalDocs.URL)
	require.Equal(t, `"a"`, string(spec.Example.Raw))
}

// A format of numbers says nothing about a side of another type of numbers.
func TestFormatsOfOtherTypesAreNoDifference(t *testing.T) {
	for _, text := range texts(negotiated(t, `{type: number, format: double}`, `{type: integer, format: int32}`).Differences) {
		require.NotContains(t, text, "format")
	}
}

func TestMapTypesAreCosmetic(t *testing.T) {
	both, one := `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, x-kubernetes-map-type: atomic, properties: {a: {type: string}}}`
	require.Equal(t, []string{`spec.b: properties: narrows: a "string", b nothing (not every side has this field)`}, texts(negotiated(t, both, one).Differences))
	require.Equal(t, []string{`spec: x-kubernetes-map-type: cosmetic: a "atomic", b nothing`}, texts(negotiated(t, one, `{type: object, properties: {a: {type: string}}}`).Differences))
}

// Accepts returns the differences that are the causes, and no others.
func TestCausesOfARefusal(t *testing.T) {
	_, why, err := schema.Accepts(in(t, `{type: object, properties: {a: {type: string, maxLength: 3}, b: {type: boolean}, c: {type: string}}}`),
		in(t, `{type: object, properties: {a: {type: string, description: text}, b: {type: integer}, c: {type: string, maxLength: 3}}}`))
	require.NoError(t, err)
	require.Equal(t, []string{
		`spec.a: maxLength: narrows: inner nothing, outer 3`, `spec.b: type: conflicts: inner "integer", outer "boolean"`,
	}, texts(why))
}

// A default that API servers fill in can break a rule, also in the items of a list and in the values of a map.
func TestADefaultCanBreakARule(t *testing.T) {
	const rule = `x-kubernetes-validations: [{rule: "!has(self.a)"}]`
	for _, around := range []string{`%s`, `{type: array, items: %s}`, `{type: object, additionalProperties: %s}`} {
		with := func(field string) string {
			return strings.Replace(around, "%s", `{type: object, properties: {a: `+field+`, b: {type: string}}, `+rule+`}`, 1)
		}
		c, err := schema.Compare(schema.Side{Name: "a", Schema: in(t, with(`{type: string}`))}, schema.Side{Name: "b", Schema: in(t, with(`{type: string, default: x}`))})
		require.NoError(t, err)
		require.NotEqual(t, schema.Equal, c.Relation, around)
		require.NotEqual(t, schema.Subset, c.Relation, around)
		require.NotEmpty(t, losses(t, in(t, with(`{type: string}`)), in(t, with(`{type: string, default: x}`))), around)
	}
}

// Stored objects have the defaults of their own server, also in the items of a list and in the values of a map.
func TestFieldsThatWereFilledInAreNotMissing(t *testing.T) {
	for _, around := range []string{`%s`, `{type: array, items: %s}`, `{type: object, additionalProperties: %s}`} {
		in := func(text string) *props { return in(t, strings.Replace(around, "%s", text, 1)) }
		up, down := in(`{type: object, properties: {a: {type: string, default: x}}}`), in(`{type: object, required: [a], properties: {a: {type: string}}}`)
		require.Empty(t, losses(t, up, down), around)
		require.NotEmpty(t, losses(t, in(`{type: object, properties: {a: {type: string}}}`), down), around)
	}
}

// A conflict is reported where it begins, and not at the objects around it.
func TestConflictsAreReportedOnce(t *testing.T) {
	const required = `{type: object, required: [a], properties: {a: {type: object, required: [c], properties: {c: {type: TYPE}}}}}`
	up, down := in(t, strings.Replace(required, "TYPE", "string", 1)), in(t, strings.Replace(required, "TYPE", "boolean", 1))
	up.Required, down.Required = []string{"spec"}, []string{"spec"}
	require.Equal(t, []string{"spec.a.c type"}, losses(t, up, down))
}

// A field whose name only begins like that of another one is not within it.
func TestBelow(t *testing.T) {
	for place, within := range map[[2]string]bool{
		{"spec.a.b", "spec.a"}: true, {"spec.a[*]", "spec.a"}: true, {"spec", ""}: true, {"spec.a.*", "spec.a"}: true,
		{"spec.a", "spec.a"}: false, {"spec.ab", "spec.a"}: false, {"spec.a", "spec.a.b"}: false, {"", ""}: false, {"meta", "spec"}: false,
	} {
		require.Equal(t, within, schema.Below(place[0], place[1]), place)
	}
}

func TestFormsOfIntOrStringAreEqual(t *testing.T) {
	for _, other := range []string{
		`{x-kubernetes-int-or-string: true, format: int-or-string}`, `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`,
	} {
		c, err := schema.Compare(schema.Side{Name: "a", Schema: in(t, `{x-kubernetes-int-or-string: true}`)}, schema.Side{Name: "b", Schema: in(t, other)})
		require.NoError(t, err)
		require.Equal(t, schema.Equal, c.Relation, other)
	}
}

func TestDeepSchemasAreRefused(t *testing.T) {
	nested := func(depth int) *props {
		s := &props{Type: "string"}
		for range depth {
			s = &props{Type: "object", Properties: map[string]props{"a": *s}}
		}
		return s
	}
	_, err := schema.Negotiate(schema.Side{Name: "a", Schema: nested(200)})
	require.NoError(t, err)
	_, err = schema.Negotiate(schema.Side{Name: "a", Schema: nested(201)})
	require.ErrorContains(t, err, "nested deeper than 200 levels")
}

// A long value is cut in the text of a difference, and a value at the limit is not.
func TestLongValuesAreCut(t *testing.T) {
	for length, cut := range map[int]bool{1: false, schema.BriefLength - 3: false, schema.BriefLength - 2: false, schema.BriefLength - 1: true, 1000: true} {
		n := negotiated(t, `{type: string, description: `+strings.Repeat("x", length)+`}`, `{type: string}`) // quotes are two characters
		require.Equal(t, cut, strings.Contains(texts(n.Differences)[0], "..."), length)
	}
}
