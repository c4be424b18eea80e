// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serverSet are the fields of metadata that a server sets on each object.
var serverSet = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}

// comparison has the paths at which an upstream and a downstream object differ.
type comparison struct {
	changed  []string // fields that the author has set
	assigned []string // fields that the author has not set: a server or a controller has
}

// compare compares an upstream and a downstream object, without their status, the metadata that a server sets, and
// the marks of the syncer. written is the object as its author wrote it.
func compare(written, up, down *unstructured.Unstructured) comparison {
	var c comparison
	for _, path := range differences(nil, bare(up), bare(down)) {
		text := index.ReplaceAllString(strings.Join(path, "."), "[*]")
		if isSet(written.Object, path) {
			c.changed = append(c.changed, text)
		} else {
			c.assigned = append(c.assigned, text)
		}
	}
	slices.Sort(c.changed)
	slices.Sort(c.assigned)
	c.changed, c.assigned = slices.Compact(c.changed), slices.Compact(c.assigned)
	return c
}

var index = regexp.MustCompile(`\.\[[0-9]+\]`)

// bare returns the content of an object that is compared.
func bare(obj *unstructured.Unstructured) map[string]any {
	obj = obj.DeepCopy()
	for _, field := range serverSet {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	ours := func(key, _ string) bool { return strings.Contains(key, "syncer.atoll.dev/") || key == clusterLabel }
	for get, set := range map[string]struct {
		get func() map[string]string
		set func(map[string]string)
	}{"labels": {obj.GetLabels, obj.SetLabels}, "annotations": {obj.GetAnnotations, obj.SetAnnotations}} {
		kept := set.get()
		maps.DeleteFunc(kept, ours)
		if set.set(kept); len(kept) == 0 {
			unstructured.RemoveNestedField(obj.Object, "metadata", get)
		}
	}
	kept := slices.DeleteFunc(obj.GetFinalizers(), func(key string) bool { return ours(key, "") })
	if obj.SetFinalizers(kept); len(kept) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "finalizers")
	}
	return obj.Object
}

// differences returns the paths of the deepest fields at which two values differ. Items of lists are named by their
// index, such as [0].
func differences(at []string, a, b any) [][]string {
	under := func(name string) []string { return append(slices.Clone(at), name) }
	var found [][]string
	if _, ok := b.(map[string]any); a == nil && ok {
		a, b = b, a
	}
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok && (b != nil || len(x) == 0) {
			break
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			found = append(found, differences(under(key), x[key], y[key])...)
		}
		return found
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			found = append(found, differences(under(fmt.Sprintf("[%d]", i)), x[i], y[i])...)
		}
		return found
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return [][]string{at}
}

// isSet reports whether an object has a field at the path or, for data of a Secret, whether it has stringData.
func isSet(v any, path []string) bool {
	if len(path) > 0 && path[0] == "data" {
		if fields, _ := v.(map[string]any); fields["stringData"] != nil {
			return true
		}
	}
	for _, name := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscanf(name, "[%d]", &i); err != nil || i >= len(x) {
				return false
			}
			v = x[i]
		default:
			return false
		}
	}
	return v != nil
}

func TestCompare(t *testing.T) {
	object := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: fields}
	}
	spec := func(ports ...any) map[string]any { return map[string]any{"spec": map[string]any{"ports": ports}} }
	port := func(n int64) map[string]any { return map[string]any{"port": int64(80), "nodePort": n} }
	for name, c := range map[string]struct {
		written, up, down map[string]any
		want              comparison
	}{
		"equal":         {spec(port(1)), spec(port(1)), spec(port(1)), comparison{}},
		"changed":       {spec(port(1)), spec(port(1)), spec(port(2)), comparison{changed: []string{"spec.ports[*].nodePort"}}},
		"assigned":      {spec(map[string]any{"port": int64(80)}), spec(port(1)), spec(port(2)), comparison{assigned: []string{"spec.ports[*].nodePort"}}},
		"removed":       {spec(port(1)), spec(port(1)), map[string]any{"spec": map[string]any{}}, comparison{changed: []string{"spec.ports"}}},
		"an absent map": {map[string]any{}, map[string]any{}, map[string]any{"a": map[string]any{"b": "c"}}, comparison{assigned: []string{"a.b"}}},
		"an empty map":  {map[string]any{"a": map[string]any{}}, map[string]any{"a": map[string]any{}}, map[string]any{}, comparison{changed: []string{"a"}}},
		"a list's item": {spec(port(1)), spec(port(1)), spec(port(1), port(2)), comparison{changed: []string{"spec.ports"}}},
		"stringData": {map[string]any{"stringData": map[string]any{"a": "b"}}, map[string]any{"data": map[string]any{"a": "Yg=="}}, map[string]any{},
			comparison{changed: []string{"data.a"}}},
		"metadata of servers, and marks": {map[string]any{},
			map[string]any{"status": "x", "metadata": map[string]any{"uid": "1", "labels": map[string]any{clusterLabel: "a"}, "finalizers": []any{"syncer.atoll.dev/a"}}},
			map[string]any{"metadata": map[string]any{"uid": "2", "annotations": map[string]any{"syncer.atoll.dev/uid": "1"}}}, comparison{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, compare(object(c.written), object(c.up), object(c.down)))
		})
	}
}
