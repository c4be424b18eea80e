// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// bound is a limit of numbers. A nil Value means no limit.
type bound struct {
	Value     *float64 `json:"value,omitempty"`
	Exclusive bool     `json:"exclusive,omitempty"`
}

func maximum(s *apiextensionsv1.JSONSchemaProps) bound { return bound{s.Maximum, s.ExclusiveMaximum} }
func minimum(s *apiextensionsv1.JSONSchemaProps) bound { return bound{s.Minimum, s.ExclusiveMinimum} }

// numbers merges the keywords of numbers. API servers treat a fractional limit by the type: if the type is number,
// they compare an integer with the integral part of the limit; if the type is integer, they reject every integer.
// If the result is of type integer, the fractional limits of numbers therefore become a clause of allOf, which has
// no type.
func (n *negotiator) numbers(at position, views []view, out *apiextensionsv1.JSONSchemaProps, kind string, more *nested) bool {
	var highs, lows []bound
	var factors []float64
	for _, v := range views {
		odd := kind == "integer" && hasFraction(v.s)
		if odd && v.s.Type == "integer" {
			n.conflict(at, "type", views, func(s *apiextensionsv1.JSONSchemaProps) any { return kindOf(s) }, n.names[v.side]+" limits integers by a fraction, and accepts none")
			return false
		}
		if odd {
			more.add(apiextensionsv1.JSONSchemaProps{
				Maximum: v.s.Maximum, ExclusiveMaximum: v.s.ExclusiveMaximum,
				Minimum: v.s.Minimum, ExclusiveMinimum: v.s.ExclusiveMinimum, MultipleOf: v.s.MultipleOf,
			})
			continue
		}
		if v.s.Maximum != nil {
			highs = append(highs, maximum(v.s))
		}
		if v.s.Minimum != nil {
			lows = append(lows, minimum(v.s))
		}
		if v.s.MultipleOf != nil && !slices.Contains(factors, *v.s.MultipleOf) {
			factors = append(factors, *v.s.MultipleOf)
		}
	}
	high, low := tightest(highs, 1), tightest(lows, -1)
	slices.Sort(factors)
	if len(factors) > 0 {
		out.MultipleOf = &factors[0]
		for _, f := range factors[1:] {
			more.add(apiextensionsv1.JSONSchemaProps{MultipleOf: &f})
		}
	}
	multiple := func(s *apiextensionsv1.JSONSchemaProps) *float64 { return s.MultipleOf }
	compare(n, at, "multipleOf", Narrows, views, multiple, out.MultipleOf)
	out.Format = n.numberFormat(at, views, kind)
	if !fits(&high, &low, out.Format) || impossible(kind, low, high) {
		n.conflict(at, "maximum", views, func(s *apiextensionsv1.JSONSchemaProps) any { return []bound{minimum(s), maximum(s)} }, "no number is in all of the ranges")
		return false
	}
	compare(n, at, "maximum", Narrows, views, maximum, high)
	compare(n, at, "minimum", Narrows, views, minimum, low)
	out.Maximum, out.ExclusiveMaximum = high.Value, high.Exclusive
	out.Minimum, out.ExclusiveMinimum = low.Value, low.Exclusive
	return true
}

// hasFraction reports whether a limit of numbers is not an integer.
func hasFraction(s *apiextensionsv1.JSONSchemaProps) bool {
	return slices.ContainsFunc([]*float64{s.Maximum, s.Minimum, s.MultipleOf}, fractional)
}

func fractional(f *float64) bool {
	return f != nil && (*f != math.Trunc(*f) || math.Abs(*f) >= 1<<63)
}

// tightest returns the tightest bound: the least of upper bounds (sign 1), the greatest of lower ones (sign -1). Of
// bounds with equal integral parts, one exclusive bound makes the result exclusive, since API servers compare integers
// with the integral part.
func tightest(bounds []bound, sign float64) bound {
	var out bound
	for _, b := range bounds {
		switch {
		case out.Value == nil:
			out = b
		case *b.Value == *out.Value:
			out.Exclusive = out.Exclusive || b.Exclusive
		default:
			same := math.Trunc(*b.Value) == math.Trunc(*out.Value)
			exclusive := out.Exclusive || b.Exclusive
			if sign*(*b.Value) < sign*(*out.Value) {
				out = b
			}
			if same {
				out.Exclusive = exclusive
			}
		}
	}
	if out.Value != nil {
		out.Value = new(*out.Value)
	}
	return out
}

// numberFormats are the formats of numbers, the smallest first. API servers check them only if the type is integer or
// number.
var numberFormats = []string{"int32", "int64", "float", "double"}

// numberFormat returns the smallest format of numbers that a view has, or "".
func (n *negotiator) numberFormat(at position, views []view, kind string) string {
	format := func(s *apiextensionsv1.JSONSchemaProps) string {
		switch {
		case s.Type == "integer" && strings.HasPrefix(s.Format, "int"), s.Type == "number" && (s.Format == "float" || s.Format == "double"):
			return s.Format
		}
		return ""
	}
	var found []string
	for _, v := range views {
		if f := format(v.s); f != "" && (kind == v.s.Type) {
			found = append(found, f)
		}
	}
	result := ""
	for _, f := range numberFormats {
		if result == "" && slices.Contains(found, f) {
			result = f
		}
	}
	return compare(n, at, "format", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) string {
		if s.Type != kind {
			return result
		}
		return format(s)
	}, result)
}

// fits drops bounds outside of the range of a format, since API servers reject every value under such a bound. It
// returns false if no value is left.
func fits(high, low *bound, format string) bool {
	limits, ok := map[string][2]float64{"int32": {math.MinInt32, math.MaxInt32}, "float": {-math.MaxFloat32, math.MaxFloat32}}[format]
	if !ok {
		return true
	}
	if high.Value != nil && *high.Value > limits[1] {
		*high = bound{}
	}
	if low.Value != nil && *low.Value < limits[0] {
		*low = bound{}
	}
	return (high.Value == nil || *high.Value >= limits[0]) && (low.Value == nil || *low.Value <= limits[1])
}

func impossible(kind string, low, high bound) bool {
	if kind != "integer" && kind != "number" || low.Value == nil || high.Value == nil {
		return false
	}
	from, to := *low.Value, *high.Value
	if kind == "integer" && low.Exclusive {
		from++
	}
	if kind == "integer" && high.Exclusive {
		to--
	}
	return from > to || kind == "number" && from == to && (low.Exclusive || high.Exclusive)
}

// strings merges the keywords of strings. It returns false if no length of a string is possible.
func (n *negotiator) strings(at position, views []view, out *apiextensionsv1.JSONSchemaProps, kind string, more *nested) bool {
	out.MinLength = compare(n, at, "minLength", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinLength }, greatest(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MinLength }))
	out.MaxLength = compare(n, at, "maxLength", Narrows, views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxLength }, least(views, func(s *apiextensionsv1.JSONSchemaProps) *int64 { return s.MaxLength }))
	if kind == "string" && over(out.MinLength, out.MaxLength) {
		n.conflict(at, "maxLength", views, func(s *apiextensionsv1.JSONSchemaProps) any { return []*int64{s.MinLength, s.MaxLength} }, "no length is in all of the ranges")
		return false
	}
	patterns := distinct(views, func(s *apiextensionsv1.JSONSchemaProps) string { return s.Pattern })
	for i, p := range patterns {
		if i == 0 {
			out.Pattern = p
			continue
		}
		more.add(apiextensionsv1.JSONSchemaProps{Pattern: p})
	}
	n.report(at, "pattern", Narrows, views, each(views, func(s *apiextensionsv1.JSONSchemaProps) any { return optional(s.Pattern) }), patterns, "all must match")
	if kind == "integer" || kind == "number" {
		return true
	}
	formats := distinct(views, stringFormat)
	for i, f := range formats {
		if i == 0 {
			out.Format = f
			continue
		}
		more.add(apiextensionsv1.JSONSchemaProps{Format: f})
	}
	n.report(at, "format", Narrows, views, each(views, func(s *apiextensionsv1.JSONSchemaProps) any { return optional(stringFormat(s)) }), formats, "all must match")
	return true
}

// stringFormat returns the format of a string, even an unknown one, since a newer API server may check it. It returns
// "" for the format int-or-string and for those of numbers, which are not checked in strings.
func stringFormat(s *apiextensionsv1.JSONSchemaProps) string {
	if s.Type == "integer" || s.Type == "number" || s.Format == intOrString || slices.Contains(numberFormats, s.Format) {
		return ""
	}
	return s.Format
}

// optional returns a list with s, or nil if s is empty.
func optional(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// distinct returns the non-empty texts, sorted and without duplicates.
func distinct(views []view, value func(*apiextensionsv1.JSONSchemaProps) string) []string {
	var out []string
	for _, v := range views {
		if t := value(v.s); t != "" {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func each(views []view, value func(*apiextensionsv1.JSONSchemaProps) any) []any {
	out := make([]any, len(views))
	for i, v := range views {
		out[i] = value(v.s)
	}
	return out
}

func least(views []view, value func(*apiextensionsv1.JSONSchemaProps) *int64) *int64 {
	var out *int64
	for _, v := range views {
		if x := value(v.s); x != nil && (out == nil || *x < *out) {
			out = new(*x)
		}
	}
	return out
}

func greatest(views []view, value func(*apiextensionsv1.JSONSchemaProps) *int64) *int64 {
	var out *int64
	for _, v := range views {
		if x := value(v.s); x != nil && (out == nil || *x > *out) {
			out = new(*x)
		}
	}
	return out
}

// over reports whether a range is empty.
func over(low, high *int64) bool { return low != nil && high != nil && *low > *high }
