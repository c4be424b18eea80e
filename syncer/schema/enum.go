// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// decode returns the value of j, with integers as int64, as API servers do.
func decode(j apiextensionsv1.JSON) (any, error) {
	if len(j.Raw) == 0 {
		return nil, nil
	}
	var out any
	err := json.Unmarshal(j.Raw, &out)
	return out, err
}

// key returns a text that is the same for equal values, such as 1 and 1.0.
func key(j apiextensionsv1.JSON) string {
	value, err := decode(j)
	if err != nil {
		return string(j.Raw)
	}
	return canonical(value)
}

// enum keeps the values that are in all enums and that every side and the result accept. It returns false if no value
// is left. The result may have a format as a clause of allOf: such a clause rejects values other than strings.
func (n *negotiator) enum(at position, views []view, out *apiextensionsv1.JSONSchemaProps) bool {
	limited := slices.DeleteFunc(slices.Clone(views), func(v view) bool { return len(v.s.Enum) == 0 })
	if len(limited) == 0 {
		return true
	}
	found := map[string]apiextensionsv1.JSON{}
	for _, v := range limited {
		for _, e := range v.s.Enum {
			if other, ok := found[key(e)]; ok {
				e = preferred(e, other)
			}
			found[key(e)] = e
		}
	}
	var kept []apiextensionsv1.JSON
	for _, k := range sortedKeys(found) {
		value, err := decode(found[k])
		if err != nil || !accepts(value, out) || !all(views, func(v view) bool { return accepts(value, v.s) }) {
			continue
		}
		e := found[k]
		kept = append(kept, *e.DeepCopy())
	}
	out.Enum = kept
	if len(out.Enum) == 0 {
		n.conflict(at, "enum", views, func(s *apiextensionsv1.JSONSchemaProps) any { return s.Enum }, "no value is in all of them")
		return false
	}
	values := each(views, func(s *apiextensionsv1.JSONSchemaProps) any { return keys(s.Enum) })
	n.report(at, "enum", Narrows, views, values, keys(out.Enum), "")
	return true
}

// preferred returns that one of two equal numbers which is written with a fraction. If an enum has an integer such as
// 1, API servers cut off the fraction of a value before they compare it. They do not do this if the enum has 1.0.
func preferred(a, b apiextensionsv1.JSON) apiextensionsv1.JSON {
	if bytes.ContainsAny(b.Raw, ".eE") && !bytes.HasPrefix(b.Raw, []byte(`"`)) {
		return b
	}
	return a
}

// keys returns the values of an enum in a canonical order.
func keys(enum []apiextensionsv1.JSON) []apiextensionsv1.JSON {
	out := slices.Clone(enum)
	slices.SortFunc(out, func(a, b apiextensionsv1.JSON) int { return bytes.Compare([]byte(key(a)), []byte(key(b))) })
	return out
}

// commonDefault returns the default that all views have, or nil.
func commonDefault(views []view) *apiextensionsv1.JSON {
	first := views[0].s.Default
	if first == nil || !all(views, func(v view) bool { return v.s.Default != nil && key(*v.s.Default) == key(*first) }) {
		return nil
	}
	return first.DeepCopy()
}

// hasDefault reports whether API servers fill in the field. A default of null does not count.
func hasDefault(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.Default != nil && string(bytes.TrimSpace(s.Default.Raw)) != "null"
}
