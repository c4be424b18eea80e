// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// Bounds that meet leave their common values, and bounds that miss each other by one leave none. Both orders of the sides
// have the same result.
func TestBoundsThatMeet(t *testing.T) {
	type row struct{ a, b, want string } // of a field's schema; empty: the field is removed
	var rows []row
	for limits, meet := range map[string]bool{
		"integer: minimum: 3 | maximum: 3": true, "integer: minimum: 4 | maximum: 3": false,
		"integer: exclusiveMinimum: true, minimum: 3 | maximum: 4": true, "integer: exclusiveMinimum: true, minimum: 3 | maximum: 3": false,
		"integer: minimum: 3 | exclusiveMaximum: true, maximum: 4": true, "integer: minimum: 3 | exclusiveMaximum: true, maximum: 3": false,
		"integer: exclusiveMinimum: true, minimum: 3 | exclusiveMaximum: true, maximum: 5": true,
		"integer: exclusiveMinimum: true, minimum: 3 | exclusiveMaximum: true, maximum: 4": false,

		"number: minimum: 3 | maximum: 3": true, "number: minimum: 4 | maximum: 3": false,
		"number: exclusiveMinimum: true, minimum: 3 | maximum: 3": false, "number: minimum: 3 | exclusiveMaximum: true, maximum: 3": false,
		"number: exclusiveMinimum: true, minimum: 3 | exclusiveMaximum: true, maximum: 4": true,

		"integer: format: int32 | maximum: 2147483647": true, "integer: format: int32 | minimum: -2147483648": true,
		"integer: format: int32 | maximum: -2147483648": true, "integer: format: int32 | minimum: 2147483647": true,
		"integer: format: int32 | maximum: -2147483649": false, "integer: format: int32 | minimum: 2147483648": false,

		"string: minLength: 3 | maxLength: 3": true, "string: minLength: 3 | maxLength: 2": false,
	} {
		kind, limits, _ := strings.Cut(limits, ": ")
		a, b, _ := strings.Cut(limits, " | ")
		r := row{a: fmt.Sprintf("{type: %s, %s}", kind, a), b: fmt.Sprintf("{type: %s, %s}", kind, b)}
		if meet {
			r.want = fmt.Sprintf("{type: %s, %s, %s}", kind, a, b)
		}
		rows = append(rows, r)
	}
	for _, r := range rows {
		for _, sides := range [][2]string{{r.a, r.b}, {r.b, r.a}} {
			got, there := negotiated(t, sides[0], sides[1]).Schema.Properties["spec"]
			require.Equal(t, r.want != "", there, "%s and %s: %s", sides[0], sides[1], show(&got))
			if there {
				require.Equal(t, show(schemaOf(t, r.want)), show(&got))
			}
		}
	}
}

// API servers compare integers with 64 bits: a limit beyond them accepts none.
func TestLimitsBeyondIntegers(t *testing.T) {
	for limit, fits := range map[string]bool{"9223372036854774784": true, "9223372036854775808": false, "-9223372036854774784": true, "-9223372036854775808": false} {
		_, there := negotiated(t, `{type: integer}`, `{type: integer, maximum: `+limit+`}`).Schema.Properties["spec"]
		require.Equal(t, fits, there, limit)
	}
}

// Of equal numbers in enums, the one with a fraction stays.
func TestEqualNumbersOfEnums(t *testing.T) {
	enum := func(values ...string) *props {
		s := &props{Type: "number"}
		for _, v := range values {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(v)})
		}
		return &props{Type: "object", Properties: map[string]props{"spec": *s}}
	}
	n, err := schema.Negotiate(schema.Side{Name: "a", Schema: enum("1", "2", "3e0")}, schema.Side{Name: "b", Schema: enum("1.0", "3", "4")})
	require.NoError(t, err)
	require.Equal(t, enum("1.0", "3e0"), n.Schema)
}

// Each row is about items, values or undeclared fields. Both orders of the sides have the same result.
func TestEdgesOfContents(t *testing.T) {
	for _, test := range []struct{ name, a, b, want string }{
		{"a default of items that all sides have stays", `{type: array, items: {type: string, default: x, maxLength: 5}}`, `{type: array, items: {type: string, default: x, maxLength: 7}}`,
			`{type: array, items: {type: string, default: x, maxLength: 5}}`},
		{"defaults of items that differ are left out", `{type: array, items: {type: string, default: x, maxLength: 5}}`, `{type: array, items: {type: string, default: w, maxLength: 7}}`,
			`{type: array, items: {type: string, maxLength: 5}}`},
		{"a default of items that one side has is left out", `{type: array, items: {type: string, default: x, maxLength: 5}}`, `{type: array, items: {type: string, maxLength: 7}}`,
			`{type: array, items: {type: string, maxLength: 5}}`},
		{"items of any value", `{x-kubernetes-preserve-unknown-fields: true, items: {type: string, maxLength: 3}}`, `{x-kubernetes-preserve-unknown-fields: true, items: {type: string, maxLength: 5}}`,
			`{x-kubernetes-preserve-unknown-fields: true, items: {type: string, maxLength: 3}}`},
		{"keys with a default stay optional", `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string, default: x}, l: {type: string}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string, default: x}}}}`,
			`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string, default: x}}}}`},
		{"unknown fields around strings", `{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: string}}`, `{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 7, items: {type: string}}`,
			`{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: string}}`},
		{"unknown fields around lists", `{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: array, items: {type: string}}}`,
			`{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 7, items: {type: array, items: {type: string}}}`,
			`{type: array, x-kubernetes-preserve-unknown-fields: true, maxItems: 5, items: {type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: string}}}`},
		{"a default that both sides have, with rules", `{type: object, properties: {f: {type: string, default: a, maxLength: 5, x-kubernetes-validations: [{rule: "self != 'x'"}]}}}`,
			`{type: object, properties: {f: {type: string, default: a, maxLength: 7, x-kubernetes-validations: [{rule: "self != 'x'"}]}}}`,
			`{type: object, properties: {f: {type: string, default: a, maxLength: 5, x-kubernetes-validations: [{rule: "self != 'x'"}]}}}`},
		{"objects of an enum where undeclared fields are refused", `{type: object, enum: [{}, {x: v}]}`, `{type: object, additionalProperties: false}`, `{type: object, enum: [{}]}`},
		{"a list in a default, without a schema of items", `{type: object, properties: {f: {x-kubernetes-preserve-unknown-fields: true, default: [{w: v}]}}}`,
			`{type: object, properties: {f: {x-kubernetes-preserve-unknown-fields: true, default: [{w: v}], maxItems: 9}}}`,
			`{type: object, properties: {f: {x-kubernetes-preserve-unknown-fields: true, default: [{w: v}], maxItems: 9}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, sides := range [][2]string{{test.a, test.b}, {test.b, test.a}} {
				got := negotiated(t, sides[0], sides[1]).Schema.Properties["spec"]
				require.Equal(t, show(schemaOf(t, test.want)), show(&got))
			}
		})
	}
}

// The schema of a field that no object may set has no parts that would have to fit others, also in its items.
func TestRefusedFieldsAreBare(t *testing.T) {
	const b = `{type: array, description: text, x-kubernetes-list-type: atomic, items: {type: object, description: text, x-kubernetes-validations: [{rule: "true"}], properties: {c: {type: string, default: v}}}}`
	n := negotiated(t, `{type: object, properties: {a: {type: string}, b: `+b+`}, not: {required: [b]}}`, `{type: object, properties: {a: {type: string}}}`)
	got := n.Schema.Properties["spec"].Properties["b"]
	require.Equal(t, show(schemaOf(t, `{type: array, not: {}, items: {type: object, properties: {c: {type: string}}}}`)), show(&got))
}

// Metadata may be limited by properties or by additionalProperties, and not by both: the sides then have nothing in common.
func TestMetadataOfBothForms(t *testing.T) {
	with := func(metadata string) *props {
		return schemaOf(t, `{type: object, required: [metadata], properties: {spec: {type: string}, metadata: `+metadata+`}}`)
	}
	const named, strings, anything = `{type: object, properties: {name: {type: string, maxLength: 9}}}`, `{type: object, additionalProperties: {type: string}}`, `{type: object}`
	for _, test := range []struct {
		a, b, want string // of metadata
		differ     []string
	}{
		{strings, anything, strings, []string{`metadata: additionalProperties: narrows: a "schema", b nothing`}},
		{named, anything, named, nil},
	} {
		n, err := schema.Negotiate(schema.Side{Name: "a", Schema: with(test.a)}, schema.Side{Name: "b", Schema: with(test.b)})
		require.NoError(t, err)
		require.Equal(t, show(with(test.want)), show(n.Schema))
		require.Equal(t, test.differ, texts(n.Differences))
	}
	_, err := schema.Negotiate(schema.Side{Name: "a", Schema: with(named)}, schema.Side{Name: "b", Schema: with(strings)})
	require.ErrorContains(t, err, "metadata cannot be limited by properties and by additionalProperties")
}

// Kubernetes wants an annotation on CRDs of the community's groups only.
func TestGroupsOfTheCommunity(t *testing.T) {
	for group, theirs := range map[string]bool{
		"example.com": false, "ak8s.io": false, "akubernetes.io": false, "k8s.io.example.com": false,
		"k8s.io": true, "kubernetes.io": true, "a.k8s.io": true, "a.kubernetes.io": true,
	} {
		d := document(t, `t: {type: object, x-kubernetes-group-version-kind: [{group: `+group+`, version: v1, kind: Thing}]}`)
		crd, err := d.CustomResourceDefinition(schema.Resource{Group: group, Version: "v1", Plural: "things", Kind: "Thing"})
		require.NoError(t, err)
		_, annotated := crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation]
		require.Equal(t, theirs, annotated, group)
	}
}

// A type of exactly the limit is read.
func TestLargeTypes(t *testing.T) {
	for parts, fits := range map[int]bool{schema.NodeLimit: true, schema.NodeLimit + 1: false} {
		var fields strings.Builder
		for i := range parts - 3 { // a reference to the type, the type, and spec
			fmt.Fprintf(&fields, "f%d: {type: string}, ", i)
		}
		_, err := document(t, `t: {type: object, `+kind+`, properties: {spec: {type: object, properties: {`+fields.String()+`}}}}`).Schema(thing)
		require.Equal(t, fits, err == nil, "%d: %v", parts, err)
	}
}
