// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"errors"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Relation compares the sets of objects that two schemas accept.
type Relation string

const (
	// Equal means that both schemas accept the same objects.
	Equal Relation = "Equal"
	// Subset means that the second schema accepts all objects that the first one accepts, and perhaps more.
	Subset Relation = "Subset"
	// Superset means that the first schema accepts all objects that the second one accepts, and perhaps more.
	Superset Relation = "Superset"
	// Overlap means that neither schema is known to accept all objects of the other one.
	Overlap Relation = "Overlap"
	// Disjoint means that no object is accepted by both schemas.
	Disjoint Relation = "Disjoint"
)

// Comparison is the result of Compare.
type Comparison struct {
	Relation    Relation
	Differences []Difference
}

// Compare compares the objects that a and b accept. Equal, Subset and Superset are certain; Overlap is also returned
// if none of these three could be proven. It returns an error for schemas that [Negotiate] rejects.
func Compare(a, b Side) (*Comparison, error) {
	n, err := Negotiate(a, b)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return &Comparison{Relation: Disjoint, Differences: conflict.Differences}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &Comparison{Relation: Overlap, Differences: n.Differences}
	common := essence(n.Schema)
	isA := canonical(essence(a.Schema)) == canonical(common) && harmless(n.Schema, a.Schema, b.Schema)
	isB := canonical(essence(b.Schema)) == canonical(common) && harmless(n.Schema, b.Schema, a.Schema)
	switch {
	case isA && isB:
		out.Relation = Equal
	case isA:
		out.Relation = Subset
	case isB:
		out.Relation = Superset
	}
	return out, nil
}

// Accepts reports whether outer accepts every object that inner accepts, without dropping a field. Then the schema of
// a type may change from inner to outer while the type has objects. If Accepts returns false, the differences are the
// causes. It also returns false if it could not prove that outer accepts every object.
func Accepts(outer, inner *apiextensionsv1.JSONSchemaProps) (bool, []Difference, error) {
	c, err := Compare(Side{Name: "inner", Schema: inner}, Side{Name: "outer", Schema: outer})
	if err != nil {
		return false, nil, err
	}
	if c.Relation == Equal || c.Relation == Subset {
		return true, nil, nil
	}
	why := slices.DeleteFunc(slices.Clone(c.Differences), func(d Difference) bool { return d.Effect != Conflicts && !d.Values[0].Narrowed })
	if len(why) == 0 {
		why = c.Differences
	}
	return false, why, nil
}

// harmless reports whether the defaults that result has and inner does not have certainly do not change which objects
// outer accepts. It returns true if outer has no rules about the fields with these defaults.
func harmless(result, inner, outer *apiextensionsv1.JSONSchemaProps) bool {
	rules := &references{names: map[string]bool{}}
	rules.gather(outer)
	return !slices.ContainsFunc(added(result, inner), rules.mayName)
}

// gather collects the references of a whole schema.
func (r *references) gather(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	own := refer(nil, s)
	r.text += own.text
	r.all = r.all || own.all || s.MaxProperties != nil
	for name := range own.names {
		r.names[name] = true
	}
	for _, property := range s.Properties {
		r.gather(&property)
	}
	if s.Items != nil {
		r.gather(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		r.gather(s.AdditionalProperties.Schema)
	}
}

// added returns the names of the fields that have a default in result, but not in inner.
func added(result, inner *apiextensionsv1.JSONSchemaProps) []string {
	if result == nil || inner == nil {
		return nil
	}
	var out []string
	for name, property := range result.Properties {
		before := inner.Properties[name]
		if hasDefault(&property) && !hasDefault(&before) {
			out = append(out, name)
		}
		out = append(out, added(&property, &before)...)
	}
	if result.Items != nil && inner.Items != nil {
		out = append(out, added(result.Items.Schema, inner.Items.Schema)...)
	}
	if result.AdditionalProperties != nil && inner.AdditionalProperties != nil {
		out = append(out, added(result.AdditionalProperties.Schema, inner.AdditionalProperties.Schema)...)
	}
	return out
}

// essence returns the parts of a schema that decide which objects it accepts, in a canonical order. Defaults are left
// out, since API servers fill them in before validation.
func essence(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := s.DeepCopy()
	strip(out)
	return out
}

func strip(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	s.Description, s.Title, s.Example, s.ExternalDocs, s.XMapType, s.Default = "", "", nil, nil, nil, nil
	if s.XIntOrString {
		s.Type = ""
		if typesOnly(s.AnyOf) {
			s.AnyOf = nil
		}
		if s.Format == intOrString {
			s.Format = ""
		}
	}
	if s.XListType != nil && *s.XListType == "atomic" {
		s.XListType = nil
	}
	s.Required, s.XListMapKeys = sortedSet(s.Required), sortedSet(s.XListMapKeys)
	s.Enum = keys(s.Enum)
	slices.SortFunc(s.AllOf, func(a, b apiextensionsv1.JSONSchemaProps) int { return cmp.Compare(canonical(a), canonical(b)) })
	for i := range s.XValidations {
		s.XValidations[i] = apiextensionsv1.ValidationRule{Rule: s.XValidations[i].Rule, OptionalOldSelf: s.XValidations[i].OptionalOldSelf}
	}
	slices.SortFunc(s.XValidations, func(a, b apiextensionsv1.ValidationRule) int { return cmp.Compare(canonical(a), canonical(b)) })
	for name, property := range s.Properties {
		strip(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		strip(s.AdditionalProperties.Schema)
	}
}
