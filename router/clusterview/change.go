// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// difference returns the path of the first field that differs between before and after and that the syncer may not write,
// or "" if no such field differs. fields are the paths that it may write in addition. It is pure.
func (p placement) difference(before, after *unstructured.Unstructured, fields []string) string {
	c := comparison{placement: p}
	for _, field := range append([]string{"status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation"}, fields...) {
		c.allowed = append(c.allowed, strings.Split(field, "."))
	}
	return c.maps(nil, before.Object, after.Object)
}

type comparison struct {
	placement
	allowed [][]string
}

func (c comparison) maps(path []string, before, after map[string]any) string {
	keys := slices.Collect(maps.Keys(before))
	keys = slices.AppendSeq(keys, maps.Keys(after))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if wrong := c.values(append(slices.Clone(path), key), before[key], after[key]); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (c comparison) values(path []string, before, after any) string {
	switch {
	case reflect.DeepEqual(before, after), slices.ContainsFunc(c.allowed, func(a []string) bool { return slices.Equal(a, path) }):
		return ""
	case slices.Equal(path, []string{"metadata", "finalizers"}) && slices.Equal(c.othersIn(before), c.othersIn(after)):
		return ""
	case len(path) == 3 && path[0] == "metadata" && path[1] == "annotations" && slices.Contains(c.annotations(), path[2]):
		return ""
	}
	old, isMap := before.(map[string]any)
	next, remains := after.(map[string]any)
	if isMap && (remains || after == nil) || before == nil && remains {
		return c.maps(path, old, next)
	}
	return strings.Join(path, ".")
}

// othersIn returns the finalizers without that of the syncer.
func (c comparison) othersIn(finalizers any) (others []string) {
	list, _ := finalizers.([]any)
	for _, f := range list {
		if text, _ := f.(string); text != c.finalizer() {
			others = append(others, text)
		}
	}
	return others
}
