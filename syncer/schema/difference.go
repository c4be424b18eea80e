// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Effect is the consequence of a difference for the result, the negotiated schema.
type Effect string

const (
	// Narrows means that the result accepts less than some side does.
	Narrows Effect = "Narrows"
	// Conflicts means that no value is accepted by all sides here: the field cannot be set.
	Conflicts Effect = "Conflicts"
	// Cosmetic means that the accepted objects are the same.
	Cosmetic Effect = "Cosmetic"
)

// Difference is one keyword in one place on which the sides disagree.
type Difference struct {
	// Path is the place in an object: "spec.containers[*].name", "metadata.labels.*", or empty for the root.
	Path string `json:"path"`
	// Keyword is the keyword of the schema: "type", "enum", "required", "x-kubernetes-validations", ... "properties"
	// means that some side does not have the field.
	Keyword string `json:"keyword"`
	Effect  Effect `json:"effect"`
	// Values has one value for each side, in the order of the sides.
	Values []Value `json:"values"`
	// Result is the keyword's value in the result, nil if it is absent.
	Result any `json:"result,omitempty"`
	// Reason explains the difference where the values are not enough.
	Reason string `json:"reason,omitempty"`
}

// Value is the value of a keyword on one side.
type Value struct {
	Side string `json:"side"`
	// Value is nil if the side does not have the keyword.
	Value any `json:"value,omitempty"`
	// Narrowed means that the result accepts less here than this side.
	Narrowed bool `json:"narrowed,omitempty"`
}

// String renders the difference in one line.
func (d Difference) String() string {
	values := make([]string, 0, len(d.Values))
	for _, v := range d.Values {
		values = append(values, v.Side+" "+brief(v.Value))
	}
	text := fmt.Sprintf("%s: %s: %s: %s", describe(d.Path), d.Keyword, strings.ToLower(string(d.Effect)), strings.Join(values, ", "))
	if d.Reason != "" {
		text += " (" + d.Reason + ")"
	}
	return text
}

// briefLength bounds the length in bytes of a value in a line.
const briefLength = 80

func brief(v any) string {
	if v == nil {
		return "nothing"
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprintf("%T", v)
	}
	text := strings.TrimSpace(out.String())
	if len(text) > briefLength {
		return strings.ToValidUTF8(text[:briefLength], "") + "..."
	}
	return text
}

// sorted returns the differences in a deterministic order.
func (n *negotiator) sorted() []Difference {
	slices.SortStableFunc(n.differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Reason, b.Reason))
	})
	return n.differences
}

// compare reports a keyword if its value in the result differs from its value in one of the views, and returns result.
// A side without a view accepts any value, and the report has no value for it.
func compare[T any](n *negotiator, at position, keyword string, effect Effect, views []view, value func(*apiextensionsv1.JSONSchemaProps) T, result T) T {
	values := make([]any, len(views))
	for i, v := range views {
		values[i] = value(v.s)
	}
	n.report(at, keyword, effect, views, values, result, "")
	return result
}

// report adds a difference unless all values equal the result.
func (n *negotiator) report(at position, keyword string, effect Effect, views []view, values []any, result any, reason string) {
	resultKey := canonical(result)
	differs := false
	list := make([]Value, len(n.names))
	for i, name := range n.names {
		list[i] = Value{Side: name}
	}
	for i, v := range views {
		narrowed := canonical(values[i]) != resultKey
		differs = differs || narrowed
		list[v.side].Value = present(values[i])
		list[v.side].Narrowed = narrowed && effect != Cosmetic
	}
	if !differs {
		return
	}
	n.differences = append(n.differences, Difference{
		Path: at.path, Keyword: keyword, Effect: effect, Values: list, Result: present(result), Reason: reason,
	})
}

// conflict reports that no value is accepted by all views.
func (n *negotiator) conflict(at position, keyword string, views []view, value func(*apiextensionsv1.JSONSchemaProps) any, reason string) {
	list := make([]Value, len(n.names))
	for i, name := range n.names {
		list[i] = Value{Side: name}
	}
	for _, v := range views {
		list[v.side].Value = present(value(v.s))
		list[v.side].Narrowed = true
	}
	n.differences = append(n.differences, Difference{Path: at.path, Keyword: keyword, Effect: Conflicts, Values: list, Reason: reason})
}

// present returns v, or nil for an empty value.
func present(v any) any {
	switch canonical(v) {
	case "null", `""`, "false", "[]", "{}":
		return nil
	}
	return v
}

// canonical renders a value so that equal values have equal texts.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return string(text)
}
