// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Document is an API server's OpenAPI v3 document of one group and version. It is immutable and safe for concurrent
// use.
type Document struct {
	schemas map[string]*spec.Schema
	kinds   map[runtimeschema.GroupVersionKind]string
}

// ReadDocument reads an OpenAPI v3 document in JSON, as an API server serves it below /openapi/v3.
func ReadDocument(data []byte) (*Document, error) {
	var document struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("read OpenAPI document: %w", err)
	}
	d := &Document{schemas: document.Components.Schemas, kinds: map[runtimeschema.GroupVersionKind]string{}}
	for _, name := range sortedKeys(d.schemas) {
		if d.schemas[name] == nil {
			delete(d.schemas, name)
			continue
		}
		for _, gvk := range kindsOf(d.schemas[name]) {
			d.kinds[gvk] = name
		}
	}
	return d, nil
}

// kindsOf returns the kinds that a schema declares.
func kindsOf(s *spec.Schema) []runtimeschema.GroupVersionKind {
	text, err := json.Marshal(s.Extensions["x-kubernetes-group-version-kind"])
	if err != nil {
		return nil
	}
	var out []runtimeschema.GroupVersionKind
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// Kinds returns the kinds that the document describes, sorted.
func (d *Document) Kinds() []runtimeschema.GroupVersionKind {
	var out []runtimeschema.GroupVersionKind
	for gvk := range d.kinds {
		out = append(out, gvk)
	}
	slices.SortFunc(out, func(a, b runtimeschema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// ErrNoSchema means that a document does not describe a kind. Check the group and version, and that the API server
// serves the kind; read the document again after the kind was installed.
var ErrNoSchema = errors.New("the OpenAPI document does not describe this kind")

// Schema returns the structural schema of a kind, for a CustomResourceDefinition. It returns [ErrNoSchema] if the
// document does not describe the kind. References are resolved as follows:
//   - A type that contains itself is resolved once; below that, any value is accepted.
//   - Lists keep their types and keys; a key that is neither required nor has a default becomes required.
//   - Defaults that are the zero value of a Go type are left out: documents of built-in types have them for every field
//     that is not a pointer.
//   - Quantities are integers, or strings in the form of a quantity: a number with a fraction has to be quoted.
func (d *Document) Schema(gvk runtimeschema.GroupVersionKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return d.schema(gvk, false)
}

// CustomSchema does the same as Schema, for a kind that a CustomResourceDefinition defines. There, an object
// without declared fields drops all fields, unless the document preserves them. In a built-in type such an object
// keeps all fields.
func (d *Document) CustomSchema(gvk runtimeschema.GroupVersionKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return d.schema(gvk, true)
}

func (d *Document) schema(gvk runtimeschema.GroupVersionKind, custom bool) (*apiextensionsv1.JSONSchemaProps, error) {
	name, ok := d.kinds[gvk]
	if !ok {
		return nil, fmt.Errorf("schema of %s: %w", gvk, ErrNoSchema)
	}
	c := &converter{document: d, open: map[string]bool{}, custom: custom}
	out, err := c.convert("", &spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(prefix + name)}})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	if out.Type != "object" {
		return nil, fmt.Errorf("schema of %s: type is %q: want object", gvk, out.Type)
	}
	set(out, "apiVersion", &apiextensionsv1.JSONSchemaProps{Type: "string", Description: out.Properties["apiVersion"].Description})
	set(out, "kind", &apiextensionsv1.JSONSchemaProps{Type: "string", Description: out.Properties["kind"].Description})
	set(out, "metadata", &apiextensionsv1.JSONSchemaProps{Type: "object"})
	out.AdditionalProperties, out.XMapType, out.Default = nil, nil, nil
	if !custom {
		out.XPreserveUnknownFields = nil
	}
	out.Nullable, out.XEmbeddedResource = false, false
	return out, nil
}

// prefix begins every reference within a document.
const prefix = "#/components/schemas/"

// nodeLimit bounds the size of a schema with its references resolved.
const nodeLimit = 50_000

// quantity is the pattern of a quantity in a string.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// converter converts the schema of one kind.
type converter struct {
	document *Document
	open     map[string]bool // the references that are being resolved
	custom   bool            // objects drop undeclared fields
	nodes    int
}

// anything returns a schema that accepts and keeps any value.
func anything(description string) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Description: description, XPreserveUnknownFields: new(true)}
}

// convert converts a schema and resolves its references.
func (c *converter) convert(path string, s *spec.Schema) (*apiextensionsv1.JSONSchemaProps, error) {
	if c.nodes++; c.nodes > nodeLimit {
		return nil, fmt.Errorf("%s: more than %d parts", describe(path), nodeLimit)
	}
	ref, rest, err := reference(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", describe(path), err)
	}
	if ref == "" {
		return c.own(path, s, s.AllOf)
	}
	target, ok := c.document.schemas[ref]
	if !ok {
		return nil, fmt.Errorf("%s: $ref to %s: the document does not have it", describe(path), ref)
	}
	var out *apiextensionsv1.JSONSchemaProps
	switch {
	case c.open[ref]:
		out = anything(target.Description)
		if target.Type.Contains("object") {
			out.Type = "object"
		}
	default:
		c.open[ref] = true
		out, err = c.convert(path, target)
		delete(c.open, ref)
		if err != nil {
			return nil, err
		}
	}
	if s.Description != "" {
		out.Description = s.Description
	}
	out.Nullable = out.Nullable || s.Nullable
	for i := range rest {
		out.AllOf = append(out.AllOf, c.clause(&rest[i]))
	}
	c.listType(s, out)
	c.setDefault(s, out)
	return out, nil
}

// reference returns the name in the $ref of s, without the prefix, and the clauses of allOf that have no $ref. The $ref
// is in s itself or in one clause of its allOf. Without a $ref, the name is empty. More than one $ref is an error.
func reference(s *spec.Schema) (string, []spec.Schema, error) {
	name, rest := s.Ref.String(), []spec.Schema(nil)
	for _, clause := range s.AllOf {
		switch ref := clause.Ref.String(); {
		case ref == "":
			rest = append(rest, clause)
		case name != "":
			return "", nil, fmt.Errorf("refers to both %s and %s: want one", name, ref)
		default:
			name = ref
		}
	}
	if name == "" {
		return "", rest, nil
	}
	found, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return "", nil, fmt.Errorf("$ref is %q: want one that begins with %s", name, prefix)
	}
	return found, rest, nil
}

// own converts a schema without a reference.
func (c *converter) own(path string, s *spec.Schema, allOf []spec.Schema) (*apiextensionsv1.JSONSchemaProps, error) {
	if out := union(s); out != nil {
		return out, nil
	}
	out := c.limits(s)
	out.Description, out.Title, out.Nullable = s.Description, s.Title, s.Nullable
	if len(s.Type) == 1 {
		out.Type = s.Type[0]
	}
	if preserve, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); preserve {
		out.XPreserveUnknownFields = new(true)
	}
	for i := range allOf {
		out.AllOf = append(out.AllOf, c.clause(&allOf[i]))
	}
	var err error
	switch out.Type {
	case "object":
		err = c.object(path, s, out)
	case "array":
		if s.Items == nil || s.Items.Schema == nil {
			out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: anything("")}
			break
		}
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{}
		out.Items.Schema, err = c.convert(path+"[*]", s.Items.Schema)
	case "string", "integer", "number", "boolean":
	default:
		return anything(s.Description), nil
	}
	if err != nil {
		return nil, err
	}
	c.listType(s, out)
	c.setDefault(s, out)
	return out, nil
}

// union returns the schema of a value that may have one of several types. It returns nil if s is not such a schema.
func union(s *spec.Schema) *apiextensionsv1.JSONSchemaProps {
	types := slices.Clone([]string(s.Type))
	for _, list := range [][]spec.Schema{s.OneOf, s.AnyOf} {
		for _, one := range list {
			if len(s.Type) == 0 {
				types = append(types, one.Type...)
			}
		}
	}
	intOrStringMarked, _ := s.Extensions.GetBool("x-kubernetes-int-or-string")
	slices.Sort(types)
	out := &apiextensionsv1.JSONSchemaProps{
		Description: s.Description, Nullable: s.Nullable, XIntOrString: true,
		AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
	}
	switch text := strings.Join(types, ","); {
	case intOrStringMarked:
		out.Pattern = s.Pattern
	case text == "integer,string":
	case text == "number,string":
		out.Pattern = quantity
	case len(types) > 1:
		return anything(s.Description)
	default:
		return nil
	}
	return out
}

// object converts the fields of an object.
func (c *converter) object(path string, s *spec.Schema, out *apiextensionsv1.JSONSchemaProps) error {
	for _, name := range sortedKeys(s.Properties) {
		property := s.Properties[name]
		converted, err := c.convert(join(path, name), &property)
		if err != nil {
			return err
		}
		set(out, name, converted)
	}
	rest := s.AdditionalProperties
	switch {
	case len(out.Properties) > 0:
	case rest != nil && rest.Schema != nil:
		converted, err := c.convert(join(path, "*"), rest.Schema)
		if err != nil {
			return err
		}
		out.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: converted}
	case !c.custom:
		out.XPreserveUnknownFields = new(true)
	}
	if mapType, _ := s.Extensions.GetString("x-kubernetes-map-type"); mapType == "atomic" || mapType == "granular" {
		out.XMapType = &mapType
	}
	if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded && out.AdditionalProperties == nil {
		out.XEmbeddedResource = true
	}
	return nil
}

// clause converts a schema below allOf, anyOf, oneOf or not, where a schema must not have types.
func (c *converter) clause(s *spec.Schema) apiextensionsv1.JSONSchemaProps {
	out := c.limits(s)
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(c.clause(s.Items.Schema))}
	}
	for name, property := range s.Properties {
		if name != "metadata" {
			set(out, name, new(c.clause(&property)))
		}
	}
	for i := range s.AllOf {
		out.AllOf = append(out.AllOf, c.clause(&s.AllOf[i]))
	}
	return *out
}

// limits converts the keywords that do not depend on the type.
func (c *converter) limits(s *spec.Schema) *apiextensionsv1.JSONSchemaProps {
	out := &apiextensionsv1.JSONSchemaProps{
		Format: s.Format, Pattern: s.Pattern, Required: sortedSet(s.Required),
		Maximum: s.Maximum, ExclusiveMaximum: s.ExclusiveMaximum, Minimum: s.Minimum, ExclusiveMinimum: s.ExclusiveMinimum, MultipleOf: s.MultipleOf,
		MaxLength: s.MaxLength, MinLength: s.MinLength, MaxItems: s.MaxItems, MinItems: s.MinItems, MaxProperties: s.MaxProperties, MinProperties: s.MinProperties,
	}
	for _, e := range s.Enum {
		if text, err := json.Marshal(e); err == nil {
			out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: text})
		}
	}
	for i := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, c.clause(&s.AnyOf[i]))
	}
	for i := range s.OneOf {
		out.OneOf = append(out.OneOf, c.clause(&s.OneOf[i]))
	}
	if s.Not != nil {
		out.Not = new(c.clause(s.Not))
	}
	if rules, err := json.Marshal(s.Extensions["x-kubernetes-validations"]); err == nil {
		_ = json.Unmarshal(rules, &out.XValidations)
	}
	return out
}
