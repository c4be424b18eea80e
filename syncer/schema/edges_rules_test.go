// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rule keeps its meaning only if the values that it names have the same type in the result, also in lists and maps.
func TestRulesAboutOtherTypesAreNotCarriedOver(t *testing.T) {
	for _, around := range []string{`%s`, `{type: array, items: %s}`, `{type: object, additionalProperties: %s}`} {
		for field, carried := range map[string]bool{"x": false, "w": true} {
			with := func(number string) string {
				inner := strings.Replace(around, "%s", `{type: object, properties: {x: {type: `+number+`}, w: {type: integer}}}`, 1)
				return `{type: object, properties: {l: ` + inner + `}`
			}
			ruled := with("number") + `, x-kubernetes-validations: [{rule: "self.l == self.l && '` + field + `' != ''", message: m}]}`
			n := negotiated(t, strings.Replace(ruled, "'"+field+"'", "string(self.l."+field+")", 1), with("integer")+`}`)
			_, there := n.Schema.Properties["spec"]
			require.Equal(t, carried, there, "%s %s: %v", around, field, texts(n.Differences))
		}
	}
}

// The path at which a rule reports stays if the result has it.
func TestPathsOfRules(t *testing.T) {
	const rule = `x-kubernetes-validations: [{rule: "self.a != 'x'", fieldPath: PATH}]`
	for path, stays := range map[string]bool{".a": true, ".b": false} {
		n := negotiated(t, `{type: object, properties: {a: {type: string}, b: {type: string}}, `+strings.Replace(rule, "PATH", path, 1)+`}`,
			`{type: object, properties: {a: {type: string}}}`)
		got := n.Schema.Properties["spec"].XValidations
		require.Len(t, got, 1)
		require.Equal(t, stays, got[0].FieldPath == path, got[0].FieldPath)
		require.NoError(t, installable(n.Schema))
	}
}

// A default of one side is not shared if the other side has rules, also below the items of a list or the values of a map.
func TestADefaultIsNotSharedWithRules(t *testing.T) {
	for _, f := range [][2]string{
		{`{type: array, default: [], items: {type: string}}`, `{type: array, items: {type: string, RULES}}`},
		{`{type: object, default: {}, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string, RULES}}`},
		{`{type: string, default: a}`, `{type: string, RULES}`},
	} {
		for rules, shared := range map[string]bool{`x-kubernetes-validations: [{rule: "self != 'x'"}]`: false, `maxLength: 9`: true} {
			n := negotiated(t, `{type: object, properties: {f: `+f[0]+`}}`, `{type: object, properties: {f: `+strings.Replace(f[1], "RULES", rules, 1)+`}}`)
			spec := n.Schema.Properties["spec"]
			require.Equal(t, shared, spec.Properties["f"].Default != nil, show(&spec))
			require.Equal(t, !shared, len(spec.Required) == 1, show(&spec))
		}
	}
}

// A field that one side lacks is dropped, unless a clause of the other side depends on it: then no object may set it.
func TestClausesKeepTheFieldsThatTheyDependOn(t *testing.T) {
	for clause, depends := range map[string]bool{
		`not: {minProperties: 3}`: true, `not: {maxProperties: 0}`: true, `not: {required: [b]}`: true, `not: {properties: {b: {enum: [x]}}}`: true,
		`not: {enum: [{b: x}]}`: true, `not: {properties: {a: {enum: [x]}}}`: false, `not: {required: [a]}`: false, `not: {enum: [x]}`: false,
		`not: {properties: {a: {items: {required: [b]}}}}`: true, `x-kubernetes-validations: [{rule: "self.a != 'b'"}]`: true,
		`x-kubernetes-validations: [{rule: "self.a != 'xb'"}]`: false,
	} {
		n := negotiated(t, `{type: object, properties: {a: {type: string}, b: {type: string}}, `+clause+`}`, `{type: object, properties: {a: {type: string}}}`)
		spec := n.Schema.Properties["spec"]
		b, there := spec.Properties["b"]
		require.Equal(t, depends, there, "%s: %s", clause, show(&spec))
		require.Equal(t, depends, b.Not != nil, clause)
	}
}

// The names in a rule are whole words, also if they contain digits or underscores.
func TestNamesInRulesAreWords(t *testing.T) {
	for name, named := range map[string]bool{"b_1": true, "_1": false, "b_": false} {
		n := negotiated(t, `{type: object, properties: {a: {type: string}, `+name+`: {type: string}}, x-kubernetes-validations: [{rule: "self.a != 'b_1'"}]}`,
			`{type: object, properties: {a: {type: string}}}`)
		_, there := n.Schema.Properties["spec"].Properties[name]
		require.Equal(t, named, there, name)
	}
}

// CEL compares lists of other types in other ways, so a rule about a list needs the same list type and keys in the result.
func TestRulesAboutListsNeedTheirType(t *testing.T) {
	const items = `items: {type: object, required: [k, l], properties: {k: {type: string}, l: {type: string}}}`
	list := func(kind string) string {
		return `{type: object, properties: {l: {type: array, maxItems: 9, ` + kind + items + `}}`
	}
	const rule = `, x-kubernetes-validations: [{rule: "self.l == oldSelf.l"}]}`
	const byK, byL = `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], `, `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [l], `
	for _, test := range []struct {
		ruled, other string
		carried      bool
	}{
		{byK, byK, true}, {``, ``, true}, {`x-kubernetes-list-type: atomic, `, ``, true}, {``, byK, false}, {byL, byK, false},
	} {
		_, there := negotiated(t, list(test.ruled)+rule, list(test.other)+`}`).Schema.Properties["spec"]
		require.Equal(t, test.carried, there, "%q and %q", test.ruled, test.other)
	}
}

// A default is shared only if the merged schema keeps all of it and accepts it, with the defaults below it.
func TestDefaultsThatTheResultDoesNotKeep(t *testing.T) {
	for _, test := range []struct {
		a, b   string // the schemas of the field
		shared bool
	}{
		{`{type: object, default: {x: v}, properties: {x: {type: string}, w: {type: string}}}`, `{type: object, default: {x: v}, properties: {x: {type: string}}}`, true},
		{`{type: object, default: {w: v}, properties: {x: {type: string}, w: {type: string}}}`, `{type: object, properties: {x: {type: string}}}`, false},
		{`{type: array, default: [{w: v}], items: {type: object, properties: {x: {type: string}, w: {type: string}}}}`, `{type: array, items: {type: object, properties: {x: {type: string}}}}`, false},
		{`{type: array, default: [{x: v}], items: {type: object, properties: {x: {type: string}, w: {type: string}}}}`, `{type: array, items: {type: object, properties: {x: {type: string}}}}`, true},
		{`{type: array, default: [long], items: {type: string}}`, `{type: array, items: {type: string, maxLength: 3}}`, false},
		{`{type: array, default: [v], items: {type: string}}`, `{type: array, items: {type: string, maxLength: 3}}`, true},
		{`{type: object, default: {x: long}, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string, maxLength: 3}}`, false},
		{`{type: object, default: {x: {w: v}}, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true, maxProperties: 9}`, true},
		{`{type: object, default: {x: [{w: v}]}, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true, maxProperties: 9}`, true},
	} {
		n := negotiated(t, `{type: object, properties: {f: `+test.a+`}}`, `{type: object, properties: {f: `+test.b+`}}`)
		spec := n.Schema.Properties["spec"]
		require.Equal(t, test.shared, spec.Properties["f"].Default != nil, "%s: %s", test.a, show(&spec))
		require.NoError(t, installable(n.Schema))
	}
}

// A field that the result cannot have is dropped if its default is right with the defaults below it. A side that rejects its
// own default accepts no object.
func TestDefaultsOfFieldsThatAreDropped(t *testing.T) {
	for field, right := range map[string]bool{
		`{type: object, default: {l: [{}]}, properties: {l: {type: array, items: {type: object, required: [w], properties: {w: {type: string, default: v}}}}}}`:                    true,
		`{type: object, default: {l: [{}]}, properties: {l: {type: array, items: {type: object, required: [w], properties: {w: {type: string}}}}}}`:                                false,
		`{type: object, default: {m: {k: {}}}, properties: {m: {type: object, additionalProperties: {type: object, required: [w], properties: {w: {type: string, default: v}}}}}}`: true,
		`{type: object, default: {m: {k: {}}}, properties: {m: {type: object, additionalProperties: {type: object, required: [w], properties: {w: {type: string}}}}}}`:             false,
		`{type: object, default: {w: null}, required: [w], properties: {w: {type: string, default: v}}}`:                                                                           true,
		`{type: object, default: {w: null}, required: [w], properties: {w: {type: string, nullable: true, default: v}}}`:                                                           true,
		`{type: object, default: {w: null}, properties: {w: {type: string, nullable: true, default: long, maxLength: 3}}}`:                                                         true,
		`{type: object, default: {}, properties: {w: {type: string, default: long, maxLength: 3}}}`:                                                                                false,
	} {
		spec, there := negotiated(t, `{type: object, properties: {a: {type: string}, f: `+field+`}}`, `{type: object, properties: {a: {type: string}}}`).Schema.Properties["spec"]
		require.Equal(t, right, there, field)
		require.NotContains(t, spec.Properties, "f", field)
	}
}
