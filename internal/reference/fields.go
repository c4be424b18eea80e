// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxDepth bounds how many levels of fields a table shows.
const maxDepth = 7

// fieldTables makes the tables of fields. It remembers the fields that it has written, so that equal fields of another
// kind refer to them.
type fieldTables struct {
	known map[string]string // fields of an object, as JSON, to the first place that has them
	rows  strings.Builder
	rules []string
}

// of returns the tables of a kind's fields, and the rules between them.
func (t *fieldTables) of(kind string, schema *apiextensionsv1.JSONSchemaProps) string {
	var b strings.Builder
	t.rules = nil
	t.addRules("the object", schema.XValidations)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		part := schema.Properties[name]
		t.rows.Reset()
		t.addRules(name, part.XValidations)
		t.add(kind, name, &part, 1)
		fmt.Fprintf(&b, "\n### %s of %s\n\n%s\n\n| field | type | default | limits | description |\n|---|---|---|---|---|\n%s", name, kind, line(part.Description), t.rows.String())
	}
	if len(t.rules) > 0 {
		fmt.Fprintf(&b, "\n### Rules of %s\n\nThe API server rejects an object with the message of a rule that it breaks.\n\n| field | message |\n|---|---|\n%s", kind, strings.Join(t.rules, ""))
	}
	return b.String()
}

// add adds a row for each field of an object, each followed by the rows of the field's own fields, down to maxDepth. If
// these have rows already, the field's row refers to them instead. add also collects the validation rules.
func (t *fieldTables) add(kind, path string, object *apiextensionsv1.JSONSchemaProps, depth int) {
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		field := object.Properties[name]
		at := path + "." + name
		inner, suffix := content(&field)
		t.addRules(at, field.XValidations)
		if inner != &field {
			t.addRules(at+suffix, inner.XValidations)
		}
		text := line(field.Description)
		expand := len(inner.Properties) > 0 && depth < maxDepth
		if expand {
			key := fieldsOf(inner)
			if first, ok := t.known[key]; ok {
				text += " Its fields are those of " + first + "."
				expand = false
			} else {
				t.known[key] = fmt.Sprintf("`%s` of %s", at+suffix, kind)
			}
		}
		fmt.Fprintf(&t.rows, "| `%s` | %s | %s | %s | %s |\n", at, typeOf(&field), defaultOf(&field), limits(&field, slices.Contains(object.Required, name)), text)
		if expand {
			t.add(kind, at+suffix, inner, depth+1)
		}
	}
}

// content returns the object inside of lists and maps, and the suffix of paths that lead to it.
func content(field *apiextensionsv1.JSONSchemaProps) (inner *apiextensionsv1.JSONSchemaProps, suffix string) {
	switch {
	case field.Items != nil && field.Items.Schema != nil:
		inner, suffix = content(field.Items.Schema)
		return inner, "[]" + suffix
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		inner, suffix = content(field.AdditionalProperties.Schema)
		return inner, ".*" + suffix
	default:
		return field, ""
	}
}

// fieldsOf returns the fields of an object as a comparable text.
func fieldsOf(object *apiextensionsv1.JSONSchemaProps) string {
	text, err := json.Marshal(object.Properties)
	if err != nil {
		panic(err) // a schema that was read from YAML can be written as JSON
	}
	return string(text)
}

func (t *fieldTables) addRules(path string, rules apiextensionsv1.ValidationRules) {
	for _, r := range rules {
		message := r.Message
		if message == "" {
			message = r.Rule
		}
		t.rules = append(t.rules, fmt.Sprintf("| `%s` | %s |\n", path, cell(message)))
	}
}
