// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// references are the field names that may occur in the rules and clauses of a place and of the places above it. A name
// about which this is uncertain counts as a reference.
type references struct {
	above *references
	names map[string]bool
	text  string
	all   bool
}

// refer returns the references in the rules and clauses of s, together with the references above.
func refer(above *references, s *apiextensionsv1.JSONSchemaProps) *references {
	r := &references{above: above, names: map[string]bool{}}
	for _, rule := range s.XValidations {
		text := rule.Rule + " " + rule.MessageExpression
		r.text += text + " "
		for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			r.names[word] = true
		}
	}
	for _, e := range s.Enum {
		// An object or a list in an enum is compared as a whole, so any name counts as a reference.
		r.all = r.all || strings.HasPrefix(strings.TrimSpace(string(e.Raw)), "{") || strings.HasPrefix(strings.TrimSpace(string(e.Raw)), "[")
	}
	for _, clause := range clauses(s) {
		r.clause(clause)
	}
	if len(r.names) == 0 && !r.all && above != nil {
		return above
	}
	return r
}

func (r *references) clause(s *apiextensionsv1.JSONSchemaProps) {
	for name, property := range s.Properties {
		r.names[name] = true
		r.clause(&property)
	}
	for _, name := range s.Required {
		r.names[name] = true
	}
	// These keywords depend on all fields of an object.
	r.all = r.all || s.MinProperties != nil || s.MaxProperties != nil || s.Properties == nil && s.Items == nil && compound(s.Enum)
	if s.Items != nil && s.Items.Schema != nil {
		r.clause(s.Items.Schema)
	}
	for _, c := range clauses(s) {
		r.clause(c)
	}
}

func compound(enum []apiextensionsv1.JSON) bool {
	for _, e := range enum {
		if text := strings.TrimSpace(string(e.Raw)); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			return true
		}
	}
	return false
}

// escapes maps field names to identifiers, as CEL does.
var escapes = strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__")

// mayName reports whether there may be a reference to the field with the given name.
func (r *references) mayName(name string) bool {
	for ; r != nil; r = r.above {
		if r.all || r.names[name] || r.names[escapes.Replace(name)] || r.names["__"+name+"__"] || !identifier(name) && strings.Contains(r.text, name) {
			return true
		}
	}
	return false
}

func identifier(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
}
