// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// typeOf describes the type of a field.
func typeOf(field *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case field.XIntOrString:
		return "integer or string"
	case field.Items != nil && field.Items.Schema != nil:
		return "list of " + typeOf(field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(field.AdditionalProperties.Schema)
	case field.Format != "":
		return field.Type + " (" + field.Format + ")"
	case field.Type == "":
		return "any"
	}
	return field.Type
}

func defaultOf(field *apiextensionsv1.JSONSchemaProps) string {
	if field.Default == nil {
		return ""
	}
	return "`" + cell(string(field.Default.Raw)) + "`"
}

// limits describes the values that a field accepts.
func limits(field *apiextensionsv1.JSONSchemaProps, required bool) string {
	var list []string
	if required {
		list = append(list, "required")
	}
	if text := enum(field); text != "" {
		list = append(list, text)
	}
	for _, r := range []string{
		between("", field.Minimum, field.Maximum),
		between(" characters", field.MinLength, field.MaxLength),
		between(" items", field.MinItems, field.MaxItems),
		between(" entries", field.MinProperties, field.MaxProperties),
	} {
		if r != "" {
			list = append(list, r)
		}
	}
	if field.Pattern != "" {
		list = append(list, "pattern `"+cell(field.Pattern)+"`")
	}
	if keys := field.XListMapKeys; len(keys) > 0 {
		list = append(list, "unique by "+strings.Join(keys, ", "))
	}
	if field.XPreserveUnknownFields != nil && *field.XPreserveUnknownFields {
		list = append(list, "any fields")
	}
	if items := field.Items; items != nil && items.Schema != nil {
		if text := limits(items.Schema, false); text != "" {
			list = append(list, "each: "+text)
		}
	}
	return strings.Join(list, "; ")
}

func enum(field *apiextensionsv1.JSONSchemaProps) string {
	var values []string
	for _, v := range field.Enum {
		values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
	}
	return strings.Join(values, ", ")
}

// between describes a range of numbers of which one end or both may be open.
func between[N int64 | float64](unit string, least, most *N) string {
	switch {
	case least == nil && most == nil:
		return ""
	case most == nil:
		return "at least " + number(*least) + unit
	case least == nil:
		return "at most " + number(*most) + unit
	default:
		return number(*least) + " to " + number(*most) + unit
	}
}

// number writes large numbers without an exponent.
func number[N int64 | float64](n N) string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }
