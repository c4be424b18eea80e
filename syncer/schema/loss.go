// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Losses compares the schemas of one type on two servers for objects that are stored on the first server and then
// written to the second one. It returns a difference for each field that the second server drops, and for each bound
// by which it rejects a value, sorted by path and keyword. Defaults of the second server are no loss.
//
// Stored objects already have the defaults of the first server, so those of the second may differ. In Values, the
// first is from and the second is to. If the result is empty, the second server certainly admits each stored object
// and drops no field of it. A reported difference may be harmless: Losses also returns a difference if it cannot prove
// that no object is affected. It returns an error for schemas that [Negotiate] rejects. It is pure.
func Losses(from, to Side) ([]Difference, error) {
	if from.Schema != nil && to.Schema != nil {
		if canonical(essence(from.Schema)) == canonical(essence(to.Schema)) && canonical(from.Schema) == canonical(to.Schema) {
			return nil, nil
		}
		to.Schema = defaulted(to.Schema, from.Schema)
	}
	c, err := Compare(from, to)
	if err != nil || c.Relation == Equal || c.Relation == Subset {
		return nil, err
	}
	lost := slices.DeleteFunc(slices.Clone(c.Differences), func(d Difference) bool { return d.Effect != Conflicts && !d.Values[0].Narrowed })
	if len(lost) == 0 {
		return c.Differences, nil
	}
	return slices.DeleteFunc(slices.Clone(lost), func(d Difference) bool {
		return d.Effect == Conflicts && slices.ContainsFunc(lost, func(other Difference) bool { return below(other.Path, d.Path) })
	}), nil
}

// below reports whether the place at path is within the place at whole. Then a conflict at path is also the cause of a
// conflict at whole.
func below(path, whole string) bool {
	rest, ok := strings.CutPrefix(path, whole)
	return ok && rest != "" && (whole == "" || rest[0] == '.' || rest[0] == '[')
}

// defaulted returns a copy of outer for objects that already have the defaults of inner. A field that has a default in
// inner has the same default in the copy, and is not required there.
func defaulted(outer, inner *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := outer.DeepCopy()
	takeDefaults(out, inner)
	return out
}

func takeDefaults(outer, inner *apiextensionsv1.JSONSchemaProps) {
	outer.Required = slices.DeleteFunc(outer.Required, func(name string) bool {
		property, ok := inner.Properties[name]
		return ok && hasDefault(&property)
	})
	for name, property := range outer.Properties {
		before, ok := inner.Properties[name]
		if !ok {
			continue
		}
		if hasDefault(&before) {
			property.Default = before.Default.DeepCopy()
		}
		takeDefaults(&property, &before)
		outer.Properties[name] = property
	}
	if outer.Items != nil && inner.Items != nil && outer.Items.Schema != nil && inner.Items.Schema != nil {
		takeDefaults(outer.Items.Schema, inner.Items.Schema)
	}
	if a, b := outer.AdditionalProperties, inner.AdditionalProperties; a != nil && b != nil && a.Schema != nil && b.Schema != nil {
		takeDefaults(a.Schema, b.Schema)
	}
}
