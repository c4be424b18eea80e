// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer/schema"
)

// templates is the row of the table of coverage for the pod templates of all kinds.
const templates = "pod templates"

// coverage has, for each kind, the fields that its schema defines and those of them that the corpus sets.
type coverage map[string]*fields

type fields struct {
	objects       int
	defined, used map[string]bool
}

// covered reads the schemas of the built-in types of the items.
func (w *world) covered(t *testing.T, items []item) coverage {
	t.Helper()
	paths, err := w.up.Discovery().OpenAPIV3().Paths()
	require.NoError(t, err)
	documents := map[runtimeschema.GroupVersion]*schema.Document{}
	all := coverage{}
	for _, i := range items {
		gvk := i.written.GroupVersionKind()
		if strings.HasSuffix(gvk.Group, ".example.org") || gvk.Kind == "CustomResourceDefinition" {
			continue // custom types, and a type whose schema refers to itself
		}
		gv := gvk.GroupVersion()
		if documents[gv] == nil {
			name := "apis/" + gv.String()
			if gv.Group == "" {
				name = "api/" + gv.String()
			}
			data, err := paths[name].Schema("application/json")
			require.NoError(t, err, name)
			documents[gv], err = schema.ReadDocument(data)
			require.NoError(t, err, name)
		}
		s, err := documents[gv].Schema(gvk)
		require.NoError(t, err, gvk)
		all.add(gvk.Kind, s, i.written.Object)
	}
	return all
}

// add adds an object of a kind.
func (c coverage) add(kind string, s *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
	row := func(name string) *fields {
		if c[name] == nil {
			c[name] = &fields{defined: map[string]bool{}, used: map[string]bool{}}
		}
		return c[name]
	}
	row(kind).objects++
	if hasTemplate(s) {
		row(templates).objects++
	}
	walk(s, obj, nil, func(path []string, used bool) {
		name := kind
		if n := slices.Index(path, "template"); n >= 0 && kind != "PodTemplate" {
			if name, path = templates, path[n+1:]; len(path) == 0 {
				return
			}
		}
		key := strings.Join(path, ".")
		row(name).defined[key] = true
		if used {
			row(name).used[key] = true
		}
	})
}

func hasTemplate(s *apiextensionsv1.JSONSchemaProps) bool {
	spec := s.Properties["spec"]
	if job, ok := spec.Properties["jobTemplate"]; ok {
		spec = job.Properties["spec"]
	}
	_, ok := spec.Properties["template"]
	return ok
}

// walk visits the fields of a schema, except those of every object and the status. used is true for fields that the
// value sets.
func walk(s *apiextensionsv1.JSONSchemaProps, value any, path []string, visit func(path []string, used bool)) {
	if s.Items != nil && s.Items.Schema != nil {
		items, _ := value.([]any)
		for _, item := range append([]any{nil}, items...) {
			walk(s.Items.Schema, item, path, visit)
		}
		return
	}
	set, _ := value.(map[string]any)
	for name := range s.Properties {
		if len(path) == 0 && slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			continue
		}
		inner, at := s.Properties[name], append(slices.Clone(path), name)
		v, used := set[name]
		visit(at, used)
		if name != "metadata" { // of a template
			walk(&inner, v, at, visit)
		}
	}
}

// rows returns the rows of the table, sorted by kind.
func (c coverage) rows() []string {
	var rows []string
	for _, kind := range slices.Sorted(maps.Keys(c)) {
		f := c[kind]
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d |", kind, f.objects, len(f.used), len(f.defined)))
	}
	return rows
}

func TestCoverage(t *testing.T) {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	type props = map[string]apiextensionsv1.JSONSchemaProps
	list := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(object(props{"name": text, "image": text}))}}
	s := object(props{"kind": text, "status": text, "spec": object(props{"replicas": text, "paused": text, "template": object(props{"containers": list})})})
	c := coverage{}
	c.add("Deployment", &s, map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": 1, "template": map[string]any{"containers": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}}}})
	require.Equal(t, []string{"| Deployment | 1 | 2 | 3 |", "| pod templates | 1 | 2 | 3 |"}, c.rows())
}
