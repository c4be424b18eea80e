// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/syncer/schema"
)

func losses(t require.TestingT, up, down *props) []string {
	lost, err := schema.Losses(schema.Side{Name: "upstream", Schema: up}, schema.Side{Name: "downstream", Schema: down})
	require.NoError(t, err)
	var all []string
	for _, d := range lost {
		all = append(all, d.Path+" "+d.Keyword)
	}
	return all
}

// For each keyword, the test has a wide schema and a narrow one. Losses from the wide schema to the narrow one are the
// ones in lost. From the narrow schema to the wide one, and from a schema to itself, there are no losses.
func TestLosses(t *testing.T) {
	for _, test := range []struct {
		name, wide, narrow string
		lost               []string // from wide to narrow; with one exception, nothing is lost from narrow to wide
	}{
		{"a field is missing", `{type: object, properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.b properties"}},
		{"every field is missing", `{type: object, properties: {b: {type: string}}}`, `{type: object}`, []string{"spec.b properties"}},
		{"a field is missing deep down", `{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: string}, c: {type: string}}}}}}`,
			`{type: object, properties: {a: {type: array, items: {type: object, properties: {b: {type: string}}}}}}`, []string{"spec.a[*].c properties"}},
		{"a field of the values of a map is missing", `{type: object, additionalProperties: {type: object, properties: {b: {type: string}, c: {type: string}}}}`,
			`{type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}`, []string{"spec.*.c properties"}},
		{"a field that has a default is missing", `{type: object, properties: {a: {type: string}, b: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.b properties"}},
		{"a field that is required is missing", `{type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.b properties"}},
		{"maximum", `{type: integer, maximum: 9}`, `{type: integer, maximum: 5}`, []string{"spec maximum"}},
		{"maximum is missing", `{type: integer}`, `{type: integer, maximum: 5}`, []string{"spec maximum"}},
		{"exclusiveMaximum", `{type: integer, maximum: 5}`, `{type: integer, maximum: 5, exclusiveMaximum: true}`, []string{"spec maximum"}},
		{"minimum", `{type: number, minimum: 1}`, `{type: number, minimum: 2}`, []string{"spec minimum"}},
		{"minimum is missing", `{type: number}`, `{type: number, minimum: 2}`, []string{"spec minimum"}},
		{"exclusiveMinimum", `{type: number, minimum: 1}`, `{type: number, minimum: 1, exclusiveMinimum: true}`, []string{"spec minimum"}},
		{"multipleOf is missing", `{type: integer}`, `{type: integer, multipleOf: 3}`, []string{"spec multipleOf"}},
		{"enum", `{type: string, enum: [a, b]}`, `{type: string, enum: [a]}`, []string{"spec enum"}},
		{"enum is missing", `{type: string}`, `{type: string, enum: [a]}`, []string{"spec enum"}},
		{"maxLength", `{type: string, maxLength: 9}`, `{type: string, maxLength: 5}`, []string{"spec maxLength"}},
		{"maxLength is missing", `{type: string}`, `{type: string, maxLength: 5}`, []string{"spec maxLength"}},
		{"minLength", `{type: string, minLength: 1}`, `{type: string, minLength: 2}`, []string{"spec minLength"}},
		{"pattern is missing", `{type: string}`, `{type: string, pattern: ^a}`, []string{"spec pattern"}},
		{"format is missing", `{type: string}`, `{type: string, format: uuid}`, []string{"spec format"}},
		{"maxItems", `{type: array, maxItems: 9, items: {type: string}}`, `{type: array, maxItems: 5, items: {type: string}}`, []string{"spec maxItems"}},
		{"minItems", `{type: array, items: {type: string}}`, `{type: array, minItems: 1, items: {type: string}}`, []string{"spec minItems"}},
		{"a bound of items", `{type: array, items: {type: integer}}`, `{type: array, items: {type: integer, maximum: 5}}`, []string{"spec[*] maximum"}},
		{"maxProperties", `{type: object, additionalProperties: {type: string}}`, `{type: object, maxProperties: 5, additionalProperties: {type: string}}`, []string{"spec maxProperties"}},
		{"minProperties", `{type: object, additionalProperties: {type: string}}`, `{type: object, minProperties: 1, additionalProperties: {type: string}}`, []string{"spec minProperties"}},
		{"required", `{type: object, properties: {a: {type: string}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, []string{"spec required"}},
		{"nullable", `{type: string, nullable: true}`, `{type: string}`, []string{"spec nullable"}},
		{"type", `{type: number}`, `{type: integer}`, []string{"spec type"}},
		{"unknown fields", `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec additionalProperties"}},
		{"list type", `{type: array, items: {type: string}}`, `{type: array, x-kubernetes-list-type: set, items: {type: string}}`, []string{"spec x-kubernetes-list-type"}},
		{"a rule", `{type: object, properties: {a: {type: integer}}}`, `{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 1}]}`, []string{"spec x-kubernetes-validations"}},
		{"not", `{type: string}`, `{type: string, not: {enum: [x]}}`, []string{"spec allOf"}},
		{"nested bounds", `{type: object, properties: {a: {type: integer}, b: {type: string}}}`, `{type: object, required: [b], properties: {a: {type: integer, minimum: 0}, b: {type: string, enum: [x]}}}`,
			[]string{"spec required", "spec.a minimum", "spec.b enum"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			wide, narrow := in(t, test.wide), in(t, test.narrow)
			require.Equal(t, test.lost, losses(t, wide, narrow))
			require.Empty(t, losses(t, wide, wide))
			require.Empty(t, losses(t, narrow, narrow))
			if !slices.Contains([]string{"a field that is required is missing"}, test.name) {
				require.Empty(t, losses(t, narrow, wide))
			}
		})
	}
	for _, test := range []struct {
		name, up, down string
		lost           []string
	}{
		{"types that share nothing", `{type: string}`, `{type: boolean}`, []string{"spec type"}},
		{"another pattern", `{type: string, pattern: ^a}`, `{type: string, pattern: ^b}`, []string{"spec pattern"}},
		{"ranges that overlap", `{type: integer, minimum: 1, maximum: 5}`, `{type: integer, minimum: 3, maximum: 9}`, []string{"spec minimum"}},
		{"another default", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string, default: w}}}`, nil},
		{"a default that only one side has", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, properties: {a: {type: string}}}`, nil},
		{"a default that only the other side has", `{type: object, properties: {a: {type: string}}}`, `{type: object, properties: {a: {type: string, default: x}}}`, nil},
		{"required, and filled in before", `{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, nil},
		{"a default with a rule, and another field", `{type: object, properties: {a: {type: integer, default: 2}, b: {type: string}}, x-kubernetes-validations: [{rule: self.a > 1}]}`,
			`{type: object, properties: {a: {type: integer, default: 2}}, x-kubernetes-validations: [{rule: self.a > 1}]}`, []string{"spec.b properties"}},
		{"only descriptions", `{type: string, description: one}`, `{type: string, description: another}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.lost, losses(t, in(t, test.up), in(t, test.down)))
		})
	}
}

// If no loss is reported, the second server admits each object that the first one stores, and drops no field of it.
func TestLossesAreComplete(t *testing.T) {
	without, with := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := newGenerator(t)
		list := parties(t, g, 2)
		if g.chance(50) { // from a narrow schema to a wide one
			if n, err := schema.Negotiate(sides(list)...); err == nil {
				j, err := newJudge(n.Schema)
				require.NoError(t, err)
				list[0] = party{schema.Side{Name: "inner", Schema: n.Schema}, j}
			}
		}
		lost, err := schema.Losses(list[0].Side, list[1].Side)
		require.NoError(t, err)
		if len(lost) > 0 {
			with++
			return
		}
		without++
		for range 20 {
			stored, _, err := list[0].admit(g.document(list[0].Schema))
			if err != nil {
				continue
			}
			if err := accepts(list[1], stored); err != nil {
				t.Fatal(explain(list, nil, stored, errors.Join(errors.New("a loss that was not reported"), err)))
			}
		}
	})
	require.NotZero(t, without)
	require.NotZero(t, with)
}

// If one of two schemas of a built-in type lacks a few fields of the other one, Losses returns exactly these fields,
// and nothing in the other direction.
func TestLossesOfBuiltInTypes(t *testing.T) {
	whole, err := documents(t)["apis/apps/v1"].Schema(runtimeschema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	require.NoError(t, err)
	older := whole.DeepCopy()
	spec := older.Properties["spec"]
	template := spec.Properties["template"]
	pod := template.Properties["spec"]
	delete(pod.Properties, "hostUsers")
	containers := pod.Properties["containers"]
	delete(containers.Items.Schema.Properties, "livenessProbe")
	require.Equal(t, []string{"spec.template.spec.containers[*].livenessProbe properties", "spec.template.spec.hostUsers properties"}, losses(t, whole, older))
	require.Empty(t, losses(t, older, whole))
	require.Empty(t, losses(t, whole, whole.DeepCopy()))
}
