// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// differenceLines and differenceWidth bound a difference, so that it fits
	// into an error message.
	differenceLines = 40
	differenceWidth = 100
)

// difference returns the differences between the spec of present ("-") and the spec of crd
// ("+"), one field per line. It cuts the result off after differenceLines lines.
func difference(present, crd *unstructured.Unstructured) string {
	var lines []string
	compare(&lines, "spec", defaulted(present), defaulted(crd))
	if more := len(lines) - differenceLines; more > 0 {
		lines = append(lines[:differenceLines], fmt.Sprintf("... and %d more lines", more))
	}
	return strings.Join(lines, "\n")
}

// defaulted returns the spec with an API server's defaults, so that defaults do not show as
// differences.
func defaulted(crd *unstructured.Unstructured) any {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, typed); err != nil {
		return crd.Object["spec"]
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(typed)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&typed.Spec)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed.Spec)
	if err != nil {
		return crd.Object["spec"]
	}
	return spec
}

// compare appends the differences between two values at path.
func compare(lines *[]string, path string, present, ours any) {
	if reflect.DeepEqual(present, ours) {
		return
	}
	a, aok := fields(present)
	b, bok := fields(ours)
	if !aok || !bok {
		if present != nil {
			*lines = append(*lines, fmt.Sprintf("- %s: %s", path, brief(present)))
		}
		if ours != nil {
			*lines = append(*lines, fmt.Sprintf("+ %s: %s", path, brief(ours)))
		}
		return
	}
	keys := slices.Collect(maps.Keys(a))
	keys = slices.AppendSeq(keys, maps.Keys(b))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		compare(lines, path+key, a[key], b[key])
	}
}

// fields returns the members of a map, or of a list whose members have names. The keys of the
// result are the paths of the members below v.
func fields(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		members := make(map[string]any, len(v))
		for key, value := range v {
			members["."+key] = value
		}
		return members, true
	case []any:
		members := make(map[string]any, len(v))
		for _, item := range v {
			named, ok := item.(map[string]any)
			if !ok || named["name"] == nil {
				return nil, false
			}
			members[fmt.Sprintf("[%v]", named["name"])] = item
		}
		return members, true
	}
	return nil, false
}

// brief renders a value in one line of bounded width.
func brief(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if len(text) > differenceWidth {
		return string(text[:differenceWidth]) + "..."
	}
	return string(text)
}
