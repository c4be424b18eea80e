// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Side is one party's schema of a version of a type.
type Side struct {
	// Name is the side's name in differences, such as "upstream" or the name of a cluster. It must not be empty, and
	// must be unique among the sides.
	Name string

	// Schema is a structural schema as in spec.versions[*].schema.openAPIV3Schema of a CustomResourceDefinition.
	Schema *apiextensionsv1.JSONSchemaProps
}

// Negotiation is the result of Negotiate.
type Negotiation struct {
	// Schema accepts only objects that every side accepts. The caller owns it.
	Schema *apiextensionsv1.JSONSchemaProps

	// Differences are sorted by path and keyword.
	Differences []Difference
}

// Negotiate returns a schema that accepts only objects that all sides accept. It may be narrower than necessary, see
// the package documentation. It returns a [*ConflictError] if no object is accepted by all sides, and an error that
// names the side and the path if a schema is not structural. It is safe for concurrent use and deterministic.
func Negotiate(sides ...Side) (*Negotiation, error) {
	if len(sides) == 0 {
		return nil, errors.New("negotiate schemas: no sides: give at least one")
	}
	seen := map[string]bool{}
	n := &negotiator{}
	views := make([]view, 0, len(sides))
	for i, side := range sides {
		if side.Name == "" || seen[side.Name] {
			return nil, fmt.Errorf("negotiate schemas: sides[%d].Name is %q: want a name that no other side has", i, side.Name)
		}
		seen[side.Name] = true
		if side.Schema == nil {
			return nil, fmt.Errorf("negotiate schemas: %s has no schema", side.Name)
		}
		if err := supported("", side.Schema, 0); err != nil {
			return nil, fmt.Errorf("negotiate schemas: %s: %w", side.Name, err)
		}
		n.names = append(n.names, side.Name)
		views = append(views, root(i, side.Schema))
	}
	result, ok := n.meet(position{root: true, resource: true}, views)
	differences := n.sorted()
	if !ok {
		return nil, &ConflictError{Differences: differences}
	}
	return &Negotiation{Schema: result, Differences: differences}, nil
}

// ConflictError is the error of Negotiate if no object is accepted by all sides. Change the schema of one side at
// the paths in Differences, or leave that side out.
type ConflictError struct {
	// Differences contain at least one difference whose Effect is Conflicts.
	Differences []Difference
}

// Error names the conflicts.
func (e *ConflictError) Error() string {
	var conflicts []string
	for _, d := range e.Differences {
		if d.Effect == Conflicts {
			conflicts = append(conflicts, d.String())
		}
	}
	return "no object is accepted by all sides: " + strings.Join(conflicts, "; ")
}

// depthLimit bounds the nesting of a schema.
const depthLimit = 200

// supported returns an error if a schema, or a schema in it, is not structural or is nested too deep.
func supported(path string, s *apiextensionsv1.JSONSchemaProps, depth int) error {
	if s == nil {
		return nil
	}
	if depth > depthLimit {
		return fmt.Errorf("%s: nested deeper than %d levels", describe(path), depthLimit)
	}
	if err := structural(s); err != nil {
		return fmt.Errorf("%s: %w", describe(path), err)
	}
	for _, p := range partsOf(path, s) {
		if err := supported(p.path, p.s, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// structural returns an error if the keywords of one schema are not allowed in a structural schema. It does not check
// the schemas in it.
func structural(s *apiextensionsv1.JSONSchemaProps) error {
	switch {
	case s.Ref != nil:
		return errors.New("$ref: structural schemas have no references, resolve it")
	case len(s.PatternProperties) > 0:
		return errors.New("patternProperties: not allowed in structural schemas")
	case len(s.Dependencies) > 0:
		return errors.New("dependencies: not allowed in structural schemas")
	case s.AdditionalItems != nil:
		return errors.New("additionalItems: not allowed in structural schemas")
	case len(s.Definitions) > 0:
		return errors.New("definitions: not allowed in structural schemas")
	case s.Items != nil && len(s.Items.JSONSchemas) > 0:
		return errors.New("items: want one schema, not a list of schemas")
	}
	for _, e := range s.Enum {
		if _, err := decode(e); err != nil {
			return fmt.Errorf("enum: %w", err)
		}
	}
	if s.Default != nil {
		if _, err := decode(*s.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

// part is a schema within another one.
type part struct {
	path string
	s    *apiextensionsv1.JSONSchemaProps // may be nil
}

// partsOf returns the schemas directly within the one at path.
func partsOf(path string, s *apiextensionsv1.JSONSchemaProps) []part {
	var parts []part
	for name, property := range s.Properties {
		parts = append(parts, part{join(path, name), &property})
	}
	if s.Items != nil {
		parts = append(parts, part{path + "[*]", s.Items.Schema})
	}
	if s.AdditionalProperties != nil {
		parts = append(parts, part{join(path, "*"), s.AdditionalProperties.Schema})
	}
	for _, clause := range clauses(s) {
		parts = append(parts, part{path, clause})
	}
	return parts
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func describe(path string) string {
	if path == "" {
		return "the root"
	}
	return path
}
